//! `fi_info --check`: what a help desk would ask, answered. Facts are gathered once, from the machine (`machine`) and from
//! the library (`library`); each subject makes findings of them (`finding`); `page` writes these as a page or as JSON.
//!
//! - `loader`: which libfabric.so.1 this is, and which others there are; `cache` reads the loader's list;
//! - `providers`: usable, or why not; `shared_memory`, `limits`, `interfaces`, `rdma`, `containers`: what they stand on;
//! - `mpi`: what MPI libraries would take; `variables`: what the user has set.
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
mod shared_memory;
mod variables;

use finding::{Section, worst};
use library::Library;
use machine::Machine;

/// The text to print, and the exit status of the program.
pub fn check(json: bool) -> (Vec<u8>, u8) {
    // The machine first: it forks, and the library may start threads.
    let machine = Machine::this();
    let sections = sections(&machine, &Library::ask());
    let text = if json {
        page::document(&sections).document()
    } else {
        page::page(&sections)
    };
    (text.into_bytes(), worst(&sections).exit_status())
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
}
