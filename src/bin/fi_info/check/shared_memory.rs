//! /dev/shm and what a process may do to another one's memory: what the endpoints of one machine talk through.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::machine::Machine;
use crate::ffi::system::Room;
use crate::json::Json;

/// What is taken of /dev/shm, in KiB: docs/environment.md says the same.
const ENDPOINT: u64 = 12;
const SENDER: u64 = 2;
const BUSY_SENDER: u64 = 64;
const ROOM: u64 = 132;

const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

pub fn check(machine: &Machine) -> Section {
    let findings = vec![room(machine), scope(machine), copying(machine)];
    Section {
        subject: "shared_memory",
        title: "Shared memory",
        findings,
    }
}

/// In bytes: a process for each processor, each of which sends much to each.
fn needed(processors: u64) -> u64 {
    let senders = processors * processors.saturating_sub(1);
    (processors * ENDPOINT + senders * (SENDER + BUSY_SENDER + ROOM)) * 1024
}

fn room(machine: &Machine) -> Finding {
    let Room {
        size,
        free,
        writable,
        read_only,
    } = match &machine.shm {
        Ok(room) => *room,
        Err(error) => {
            return Finding::warning(
                "dev_shm",
                format!("/dev/shm cannot be asked for its size: {error}."),
                "Mount it, as root: mkdir -p /dev/shm; mount -t tmpfs -o mode=1777 tmpfs /dev/shm.",
            );
        }
    };
    let needed = needed(machine.processors);
    let (all, left, wanted) = (amount(size), amount(free), amount(needed));
    let count = machine.processors;
    let finding = if read_only {
        Finding::warning(
            "dev_shm",
            "/dev/shm is mounted read-only, so shm cannot be used.",
            "mount -o remount,rw /dev/shm, as root; in a container a tmpfs of its own: --tmpfs /dev/shm.",
        )
    } else if !writable {
        Finding::warning(
            "dev_shm",
            "/dev/shm cannot be written to by this user, so shm cannot be used.",
            "chmod 1777 /dev/shm, as root.",
        )
    } else if free < needed {
        Finding::warning(
            "dev_shm",
            format!("/dev/shm has {left} free of {all}; {count} processes, one for each processor, may take {wanted}."),
            "Remove old files there, or make it larger: mount -o remount,size=50% /dev/shm; in a container --shm-size=1g.",
        )
    } else {
        let enough = format!("{count} processes, one for each processor, take {wanted} at most");
        Finding::fine(
            "dev_shm",
            format!("/dev/shm can be written to and has {left} free of {all}: {enough}."),
        )
    };
    finding
        .with("size", Json::Number(size))
        .with("free", Json::Number(free))
        .with("needed", Json::Number(needed))
        .with("writable", Json::Bool(writable))
}

/// 1536 is 1.5 KiB.
pub fn amount(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let steps = (1..UNITS.len()).take_while(|step| bytes >> (10 * step) > 0).count();
    let (whole, tenth) = (bytes >> (10 * steps), ((bytes << 3 >> (10 * steps)) & 7) * 10 / 8);
    match tenth {
        0 => format!("{whole} {}", UNITS[steps]),
        tenth => format!("{whole}.{tenth} {}", UNITS[steps]),
    }
}

fn scope(machine: &Machine) -> Finding {
    let scope = machine.text(YAMA).and_then(|text| text.parse().ok());
    let sentence = match scope {
        None => "The kernel has no Yama, so it sets no ptrace scope.".into(),
        Some(0u64) => "The ptrace scope (Yama) is 0: processes of one user may copy from each other.".into(),
        Some(scope) => {
            let who = if scope == 1 {
                "its own children"
            } else {
                "no process, but for root"
            };
            format!("The ptrace scope (Yama) is {scope}: a process may copy from {who}.")
        }
    };
    Finding::fine("ptrace_scope", sentence).with("scope", scope.map_or(Json::Null, Json::Number))
}

fn copying(machine: &Machine) -> Finding {
    let Some(why) = &machine.copying_refused else {
        return Finding::fine(
            "copying",
            "process_vm_readv and process_vm_writev work between processes: tried with a child.",
        )
        .with("works", Json::Bool(true));
    };
    let advice = match machine.text(YAMA).as_deref() {
        Some("0") | None => {
            "Allow it: in a container --cap-add SYS_PTRACE, or a seccomp profile that has both calls. Nothing else need be \
             set: shm uses its rings meanwhile."
        }
        Some(_) => {
            "Allow it: sysctl kernel.yama.ptrace_scope=0, as root. Nothing else need be set: shm uses its rings meanwhile."
        }
    };
    Finding::warning(
        "copying",
        format!("process_vm_readv between processes is refused ({why}): long messages over shm are copied twice."),
        advice,
    )
    .with("works", Json::Bool(false))
    .with_text("error", why)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine::made_up::MadeUp;
    use super::*;

    #[test]
    fn the_page_names_the_same_needs() {
        let page = include_str!("../../../../docs/environment.md").replace('\n', " ");
        let told = format!(
            "{ENDPOINT} KiB for an endpoint, {SENDER} KiB for each that sends to it, and {BUSY_SENDER} KiB more for each \
             that sends it much. While it is half free, each of these has {ROOM} KiB besides"
        );
        assert!(page.contains(&told), "docs/environment.md does not say: {told}");
    }

    #[test]
    fn enough_room_and_too_little() {
        let mut made = MadeUp::new();
        assert_eq!(room(&made.0).level, Level::Fine);
        // 4 processes, each with 3 senders: 4 * (12 + 3 * 198) KiB.
        assert_eq!(needed(4), 2424 * 1024);
        let mut tight = Room {
            size: 64 << 20,
            free: 2424 * 1024,
            writable: true,
            read_only: false,
        };
        made.0.shm = Ok(tight);
        assert_eq!(room(&made.0).level, Level::Fine);
        tight.free -= 1;
        made.0.shm = Ok(tight);
        let found = room(&made.0);
        assert_eq!(found.level, Level::Warning);
        assert!(found.sentence.contains("2.2 MiB free of 64 MiB") && found.advice.unwrap().contains("--shm-size"));
    }

    #[test]
    fn no_rights_and_no_file_system() {
        let mut made = MadeUp::new();
        let shut = Room {
            size: 1,
            free: 1 << 40,
            writable: false,
            read_only: false,
        };
        made.0.shm = Ok(shut);
        assert!(room(&made.0).advice.unwrap().contains("chmod 1777"));
        // No rights help there.
        made.0.shm = Ok(Room {
            read_only: true,
            ..shut
        });
        assert!(room(&made.0).advice.unwrap().contains("remount,rw"));
        made.0.shm = Err("No such file or directory".into());
        let found = room(&made.0);
        assert_eq!(found.level, Level::Warning);
        assert!(found.sentence.contains("No such file") && found.advice.unwrap().contains("mkdir -p /dev/shm; mount"));
    }

    #[test]
    fn the_scope_is_told_and_what_is_refused_has_a_way_out() {
        let mut made = MadeUp::new();
        assert!(scope(&made.0).sentence.contains("no Yama"));
        assert_eq!(copying(&made.0).level, Level::Fine);
        made.0.copying_refused = Some("Operation not permitted".into());
        assert!(copying(&made.0).advice.unwrap().contains("SYS_PTRACE"));
        let made = made.put(YAMA, "1\n");
        assert!(
            scope(&made.0)
                .sentence
                .contains("is 1: a process may copy from its own children")
        );
        let found = copying(&made.0);
        assert_eq!(found.level, Level::Warning);
        assert!(found.sentence.contains("not permitted") && found.advice.unwrap().contains("ptrace_scope=0"));
    }

    #[test]
    fn amounts() {
        let rows = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (64 << 20, "64 MiB"),
            (25 << 40, "25 TiB"),
        ];
        for (bytes, text) in rows {
            assert_eq!(amount(bytes), text);
        }
    }
}
