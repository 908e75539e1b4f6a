//! How much memory a process may lock and how many descriptors it may have, against what is needed.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::machine::Machine;
use super::{rdma, settings, shared_memory};
use crate::json::Json;

/// How many peers the library is to expect without FI_UNIVERSE_SIZE.
const PEERS: u64 = 1024;
/// Descriptors of a program besides those of its peers.
const OTHERS: u64 = 64;
/// CAP_IPC_LOCK: its owner may lock what it wants.
const MAY_LOCK: u32 = 14;

pub fn check(machine: &Machine) -> Section {
    Section {
        subject: "limits",
        title: "Limits",
        findings: vec![descriptors(machine), locked(machine)],
    }
}

/// Soft and hard limit in /proc/self/limits; u64::MAX: none. None: the system does not tell.
fn limit(machine: &Machine, name: &str) -> Option<(u64, u64)> {
    let limits = machine.text("/proc/self/limits")?;
    let mut words = limits
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace();
    let mut number = || match words.next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    };
    Some((number()?, number()?))
}

fn numbers(finding: Finding, (soft, hard): (u64, u64)) -> Finding {
    let number = |limit| {
        if limit == u64::MAX {
            Json::Null
        } else {
            Json::Number(limit)
        }
    };
    finding.with("soft", number(soft)).with("hard", number(hard))
}

fn descriptors(machine: &Machine) -> Finding {
    let Some((soft, hard)) = limit(machine, "Max open files") else {
        return Finding::fine(
            "descriptors",
            "The system does not tell how many descriptors a process may have.",
        );
    };
    let set = settings::get(machine, "FI_UNIVERSE_SIZE").and_then(|one| one.value.parse().ok());
    let peers: u64 = set.unwrap_or(PEERS);
    let asked = if set.is_some() { " (FI_UNIVERSE_SIZE)" } else { "" };
    let needed = peers.saturating_add(OTHERS);
    let has = if hard == u64::MAX {
        "any number of".to_owned()
    } else {
        hard.to_string()
    };
    let finding = if hard < needed {
        let advice = format!(
            "Raise it: ulimit -Hn {needed}, nofile in /etc/security/limits.conf, or LimitNOFILE= of a systemd unit."
        );
        let sentence =
            format!("A process may have {has} descriptors; tcp takes one for each peer, {peers}{asked} are expected.");
        Finding::warning("descriptors", sentence, advice)
    } else {
        let sentence =
            format!("A process may have {has} descriptors, enough for {peers} peers{asked} over tcp, at one each.");
        Finding::fine("descriptors", sentence)
    };
    numbers(finding, (soft, hard)).with("needed", Json::Number(needed))
}

fn locked(machine: &Machine) -> Finding {
    let Some((soft, hard)) = limit(machine, "Max locked memory") else {
        return Finding::fine(
            "locked_memory",
            "The system does not tell how much memory a process may lock.",
        );
    };
    let amount = if soft == u64::MAX {
        "any amount of memory".into()
    } else {
        shared_memory::amount(soft)
    };
    let devices = rdma::devices(machine);
    let finding = match (devices.is_empty(), soft == u64::MAX) {
        (true, _) => Finding::fine(
            "locked_memory",
            format!("A process may lock {amount}; only RDMA devices need that, and there is none."),
        ),
        (false, true) => Finding::fine(
            "locked_memory",
            "A process may lock any amount of memory, as RDMA devices need.",
        ),
        (false, false) if may_lock(machine) => Finding::fine(
            "locked_memory",
            format!("A process may lock {amount}, but this one has CAP_IPC_LOCK, so that limit does not hold for it."),
        ),
        (false, false) => Finding::warning(
            "locked_memory",
            format!("A process may lock {amount}; RDMA devices need all that a program sends from to be locked."),
            "Raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, or LimitMEMLOCK=infinity of a systemd unit.",
        ),
    };
    numbers(finding, (soft, hard))
}

fn may_lock(machine: &Machine) -> bool {
    let status = machine.text("/proc/self/status").unwrap_or_default();
    let bits = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> MAY_LOCK & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::super::machine::made_up::MadeUp;
    use super::*;

    fn with(files: (&str, &str), locked: (&str, &str)) -> MadeUp {
        let line = |name, (soft, hard): (&str, &str)| format!("{name:<26}{soft:<21}{hard:<21}units\n");
        let head = "Limit                     Soft Limit           Hard Limit           Units\n";
        let text = [head, &line("Max open files", files), &line("Max locked memory", locked)].concat();
        MadeUp::new().put("/proc/self/limits", text)
    }

    #[test]
    fn the_hard_limit_of_descriptors_counts() {
        let rows = [
            ("1088", Level::Fine),
            ("1087", Level::Warning),
            ("unlimited", Level::Fine),
        ];
        for (hard, level) in rows {
            let made = with(("16", hard), ("1", "1"));
            let found = descriptors(&made.0);
            assert_eq!(found.level, level, "{hard}: {}", found.sentence);
        }
        let made = with(("16", "1088"), ("1", "1")).set("FI_UNIVERSE_SIZE", "5000");
        let found = descriptors(&made.0);
        assert!(found.sentence.contains("5000 (FI_UNIVERSE_SIZE)"), "{}", found.sentence);
        assert!(found.advice.unwrap().contains("ulimit -Hn 5064"));
    }

    #[test]
    fn locked_memory_matters_with_a_device() {
        let level = |made: &MadeUp| locked(&made.0).level;
        let made = with(("1", "1"), ("8388608", "8388608"));
        assert!(locked(&made.0).sentence.contains("8 MiB; only RDMA devices need that"));
        let made = made.put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
        let found = locked(&made.0);
        assert_eq!(found.level, Level::Warning);
        assert!(found.advice.unwrap().contains("ulimit -l unlimited"));
        // CAP_IPC_LOCK is bit 14.
        assert_eq!(
            level(&made.put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n")),
            Level::Fine
        );
        let free = with(("1", "1"), ("unlimited", "unlimited")).put("/sys/class/infiniband/mlx5_0/ports/1/state", "");
        assert_eq!(level(&free), Level::Fine);
    }

    #[test]
    fn a_system_that_tells_nothing() {
        let made = MadeUp::new();
        assert!(check(&made.0).findings.iter().all(|found| found.level == Level::Fine));
    }
}
