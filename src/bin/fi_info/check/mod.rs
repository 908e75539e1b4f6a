//! `fi_info --check`: what a help desk would ask, answered. Facts are gathered once, from the machine (`machine`) and
//! from the library (`library`), which a child has tried out before (`rehearsal`); each subject makes findings of them
//! (`finding`); `page` writes these as a page or as JSON.
//!
//! - `loader`: which libfabric.so.1 this is, and which others there are; `cache` reads the loader's list;
//! - `providers`: usable, or why not; `shared_memory`, `limits`, `interfaces`, `rdma`, `containers`: what they stand
//!   on;
//! - `mpi`: what MPI libraries would take; `variables`: what the user has set, which `settings` finds.
//!
//! A subject is a file with a function `check`, and a line in `sections`. Called by `main`.

mod cache;
mod containers;
mod finding;
mod interfaces;
mod library;
mod limits;
mod loader;
mod machine;
mod mpi;
mod page;
mod providers;
mod rdma;
mod rehearsal;
mod settings;
mod shared_memory;
mod variables;

use finding::{Finding, Section, worst};
use library::Library;
use machine::Machine;
use rehearsal::Rehearsal;

/// The text to print, and the exit status of the program.
pub fn check(json: bool) -> (Vec<u8>, u8) {
    // The machine first: it forks, and the library may start threads.
    let machine = Machine::this();
    let rehearsal = Rehearsal::of_this_machine();
    let library = if rehearsal.mute {
        Library::unasked()
    } else {
        Library::ask()
    };
    let mut sections = sections(&machine, &library);
    tell(&rehearsal, &mut sections);
    let text = if json {
        page::document(&sections).document()
    } else {
        page::page(&sections)
    };
    (text.into_bytes(), worst(&sections).exit_status())
}

/// What the library could not be asked about is not told of its silence.
fn tell(rehearsal: &Rehearsal, sections: &mut [Section]) {
    for section in sections {
        if section.subject == "providers" {
            section
                .findings
                .splice(0..0, rehearsal.stuck.iter().map(|stuck| stuck.finding()));
        } else if rehearsal.mute && ["interfaces", "rdma", "mpi", "variables"].contains(&section.subject) {
            section.findings = vec![Finding::warning(
                "not_asked",
                "The library would have to be asked about it, and cannot be.",
                "Mend what stands under Providers, and check again.",
            )];
        }
    }
}

fn sections(machine: &Machine, library: &Library) -> Vec<Section> {
    vec![
        loader::check(machine, library),
        providers::check(machine, library),
        shared_memory::check(machine),
        limits::check(machine),
        interfaces::check(machine, library),
        rdma::check(machine, library),
        containers::check(machine),
        mpi::check(machine, library),
        variables::check(machine, library),
    ]
}

#[cfg(test)]
mod tests {
    use super::finding::Level;
    use super::machine::made_up::MadeUp;
    use super::*;

    /// A machine on which nothing is there at all: each question still has an answer, and what is wrong has a way out.
    #[test]
    fn no_question_without_an_answer_and_no_warning_without_advice() {
        let made = MadeUp::new().set("FI_NO_SUCH", "1");
        let sections = sections(&made.0, &Library::default());
        for section in &sections {
            assert!(!section.findings.is_empty(), "{} says nothing", section.title);
            for finding in &section.findings {
                let advised = finding.advice.as_ref().is_some_and(|advice| !advice.is_empty());
                assert!(finding.level == Level::Fine || advised, "{}", finding.sentence);
                assert!(finding.sentence.ends_with('.'), "{}", finding.sentence);
            }
        }
        assert_eq!(worst(&sections), Level::Broken);
    }

    /// A library that cannot be asked: nothing is claimed in its name, and the machine's own subjects stay.
    #[test]
    fn a_library_that_hangs_is_not_spoken_for() {
        let made = MadeUp::new().set("FI_TCP_IFACE", "eth0");
        let mut sections = sections(&made.0, &Library::default());
        tell(&Rehearsal::in_vain(), &mut sections);
        for section in &sections {
            let first = &section.findings[0];
            match section.subject {
                "providers" => assert_eq!((first.about, first.level), ("stuck", Level::Broken)),
                "interfaces" | "rdma" | "mpi" | "variables" => {
                    assert_eq!((first.about, section.findings.len()), ("not_asked", 1));
                }
                _ => assert!(!["stuck", "not_asked"].contains(&first.about)),
            }
        }
    }
}
