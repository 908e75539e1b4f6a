//! Namespaces and containers: what decides whether two processes of one machine find each other.
//!
//! Called by `mod`.

use super::finding::{Finding, Section};
use super::machine::Machine;
use crate::json::Json;

/// What matters to processes that want to talk: name, in words, and the number that the machine's own always has, of
/// those that the kernel numbers so (include/uapi/linux/nsfs.h).
const KINDS: [(&str, &str, Option<u64>); 5] = [
    ("pid", "process numbers", Some(4_026_531_836)),
    ("mnt", "mounts", None),
    ("net", "network", None),
    ("ipc", "ipc", Some(4_026_531_839)),
    ("user", "users", Some(4_026_531_837)),
];
/// Files that container engines leave.
const MARKS: [(&str, &str); 3] = [
    ("/.dockerenv", "docker"),
    ("/run/.containerenv", "podman"),
    ("/singularity", "singularity or apptainer"),
];

pub fn check(machine: &Machine) -> Section {
    Section {
        subject: "containers",
        title: "Namespaces and containers",
        findings: vec![container(machine), namespaces(machine)],
    }
}

fn container(machine: &Machine) -> Finding {
    let mut hints: Vec<(String, &str)> = Vec::new();
    for (path, engine) in MARKS {
        if machine.exists(path) {
            hints.push((format!("{path} is there"), engine));
        }
    }
    if let Some(value) = machine.var("container") {
        hints.push((format!("container={value} is set"), value));
    }
    if let Some(value) = ["APPTAINER_NAME", "SINGULARITY_NAME"]
        .into_iter()
        .find_map(|name| machine.var(name))
    {
        hints.push((format!("the environment names {value}"), "singularity or apptainer"));
    }
    let groups = machine.text("/proc/1/cgroup").unwrap_or_default();
    if let Some(engine) = ["kubepods", "docker", "lxc", "libpod"]
        .into_iter()
        .find(|name| groups.contains(name))
    {
        hints.push((format!("/proc/1/cgroup has {engine}"), engine));
    }
    let Some((_, engine)) = hints.first() else {
        return Finding::fine("container", "Nothing hints at a container.").with("container", Json::Bool(false));
    };
    let why: Vec<&str> = hints.iter().map(|(why, _)| &**why).collect();
    Finding::fine("container", format!("This looks like a container of {engine}: {}.", why.join(", ")))
        .advise(
            "Ranks in several containers of one machine need one /dev/shm (--ipc=host, or --ipc=container:NAME), or they talk \
             over the network.",
        )
        .with("container", Json::Bool(true))
        .with_text("engine", *engine)
}

fn namespaces(machine: &Machine) -> Finding {
    let mut told = Vec::new();
    let mut data = Vec::new();
    for (name, words, own) in KINDS {
        let number = number(machine, "self", name);
        // The first process is the machine's, or else the container's.
        let first = self::number(machine, "1", name);
        let whose = match (number, own, first) {
            (None, ..) => ", which cannot be read",
            (Some(number), Some(own), _) if number == own => ", the machine's",
            (Some(_), Some(_), _) => ", not the machine's",
            (Some(number), None, Some(first)) if number == first => ", as of process 1",
            (Some(_), None, Some(_)) => ", not that of process 1",
            (Some(_), None, None) => "",
        };
        told.push(format!(
            "{words} {}{whose}",
            number.map_or("?".into(), |number| number.to_string())
        ));
        data.push((name, number.map_or(Json::Null, Json::Number)));
    }
    Finding::fine("namespaces", format!("Namespaces: {}.", told.join("; ")))
        .advise("Compare them between two ranks that do not meet: they need the same mounts of /dev/shm, or a network in common.")
        .with("namespaces", Json::Object(data))
}

/// Of `pid:[4026531836]`.
fn number(machine: &Machine, process: &str, kind: &str) -> Option<u64> {
    let link = machine.link(format!("/proc/{process}/ns/{kind}"))?;
    link.split_once('[')?.1.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::machine::made_up::MadeUp;
    use super::*;

    #[test]
    fn hints_at_a_container() {
        let made = MadeUp::new();
        assert!(container(&made.0).sentence.contains("Nothing hints"));
        let made = made
            .put("/run/.containerenv", "")
            .put("/proc/1/cgroup", "0::/kubepods/x");
        let found = container(&made.0);
        let told = "a container of podman: /run/.containerenv is there, /proc/1/cgroup has kubepods.";
        assert!(found.sentence.ends_with(told), "{}", found.sentence);
        assert!(found.advice.unwrap().contains("--ipc=host"));
        let made = MadeUp::new().set("container", "lxc").set("APPTAINER_NAME", "x.sif");
        assert!(
            container(&made.0)
                .sentence
                .contains("of lxc: container=lxc is set, the environment names x.sif")
        );
    }

    #[test]
    fn whose_namespaces_these_are() {
        let made = MadeUp::new()
            .link("/proc/self/ns/pid", "pid:[4026531836]")
            .link("/proc/self/ns/ipc", "ipc:[7]")
            .link("/proc/self/ns/mnt", "mnt:[8]")
            .link("/proc/1/ns/mnt", "mnt:[8]")
            .link("/proc/self/ns/net", "net:[9]")
            .link("/proc/1/ns/net", "net:[10]");
        let told = namespaces(&made.0).sentence;
        let expected = "Namespaces: process numbers 4026531836, the machine's; mounts 8, as of process 1; network 9, not that \
                        of process 1; ipc 7, not the machine's; users ?, which cannot be read.";
        assert_eq!(told, expected);
    }
}
