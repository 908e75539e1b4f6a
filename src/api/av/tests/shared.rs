//! Vectors of every sort against a plain list, and those that processes share by a name.

use super::*;
use proptest::prelude::*;
use std::process::Command;

/// The definition: places in order, each with an address and how often it was inserted.
#[derive(Default)]
struct Model(Vec<Option<(u8, usize)>>);

impl Model {
    fn find(&self, address: u8) -> Option<usize> {
        self.0
            .iter()
            .position(|place| place.is_some_and(|(there, _)| there == address))
    }

    fn insert(&mut self, address: u8) -> usize {
        let at = self.find(address).or_else(|| self.0.iter().position(Option::is_none));
        let at = at.unwrap_or(self.0.len());
        self.0.resize(self.0.len().max(at + 1), None);
        let (_, uses) = self.0[at].unwrap_or((address, 0));
        self.0[at] = Some((address, uses + 1));
        at
    }

    fn remove(&mut self, at: usize) -> Result<()> {
        let place = self
            .0
            .get_mut(at)
            .filter(|place| place.is_some())
            .ok_or(Errno(FI_EINVAL))?;
        *place = place
            .map(|(address, uses)| (address, uses - 1))
            .filter(|(_, uses)| *uses > 0);
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Work {
    Insert(Vec<u8>),
    Remove(usize),
}

fn work() -> impl Strategy<Value = Vec<(usize, Work)>> {
    let insert = prop::collection::vec(0u8..20, 0..5).prop_map(Work::Insert);
    let one = prop_oneof![insert, (0usize..22).prop_map(Work::Remove)];
    prop::collection::vec((any::<usize>(), one), 0..60)
}

fn text(address: u8) -> String {
    format!("fi_shm://{address}")
}

/// Does the work on one of `writers` at a time, and holds every one of `readers` against the model after each.
fn same_as_model(work: &[(usize, Work)], writers: &[Arc<Av>], readers: &[Arc<Av>]) {
    let mut model = Model::default();
    for (who, work) in work {
        let av = &writers[who % writers.len()];
        match work {
            Work::Insert(addresses) => {
                let names: Vec<String> = addresses.iter().copied().map(text).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let expected: Vec<u64> = addresses.iter().map(|address| model.insert(*address) as u64).collect();
                assert_eq!(insert(av, &names), (Ok(names.len()), expected));
            }
            Work::Remove(at) => assert_eq!(av.remove(&[*at as u64], 0), model.remove(*at)),
        }
        for av in readers {
            for (at, place) in model.0.iter().enumerate() {
                let expected = place.map(|(address, _)| text(address)).ok_or(Errno(FI_EINVAL));
                assert_eq!(lookup(av, at as u64), expected);
            }
            for address in 0..20 {
                let found = av.find(text(address).as_bytes());
                assert_eq!(found, model.find(address).map(|at| at as u64), "{address}");
            }
            let there: Vec<u64> = (0..model.0.len())
                .filter(|at| model.0[*at].is_some())
                .map(|at| at as u64)
                .collect();
            assert_eq!(av.members(0, NONE, 1), there);
        }
    }
}

fn own_name(test: &str) -> String {
    use core::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{test}.{}.{count}", std::process::id())
}

fn named(name: &str, flags: u64) -> Result<Arc<Av>> {
    let attr = AvAttr {
        name: Some(name),
        flags,
        ..AvAttr::default()
    };
    let domain = Domain {
        name: "test".into(),
        ..Domain::default()
    };
    Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &domain)
}

proptest! {
    #[test]
    fn a_table_is_a_list_with_holes(work in work()) {
        let av = [open(AvAttr::default())];
        same_as_model(&work, &av, &av);
    }

    /// Two who write and one who reads, each with a search table of its own.
    #[test]
    fn a_named_vector_is_the_same_for_all(work in work()) {
        let name = own_name("model");
        let writers = [named(&name, 0).unwrap(), named(&name, 0).unwrap()];
        let reader = named(&name, FI_READ).unwrap();
        let readers = [writers[0].clone(), writers[1].clone(), reader];
        same_as_model(&work, &writers, &readers);
    }
}

#[test]
fn a_reader_finds_but_does_not_change() {
    let name = own_name("reader");
    assert_eq!(named(&name, FI_READ).err(), Some(Errno(FI_ENOENT)));
    let writer = named(&name, 0).unwrap();
    let reader = named(&name, FI_READ).unwrap();
    fill(&writer, &["a", "b"]);
    // Not even what is there already.
    let mut status = [7; 2];
    let mut fi_addr = [7; 2];
    let request = Insert {
        fi_addr: Some(&mut fi_addr),
        flags: FI_SYNC_ERR,
        status: Some(&mut status),
        ..Insert::default()
    };
    assert_eq!(reader.insert(&strings(&["b", "c"]), 2, request), Ok(0));
    assert_eq!((fi_addr, status), ([NONE; 2], [FI_EACCES; 2]));
    assert_eq!(reader.remove(&[1], 0), Err(Errno(FI_EACCES)));
    let seen = (reader.generation(), reader.additions());
    fill(&writer, &["c"]);
    assert!(reader.generation() == seen.0 && reader.additions() != seen.1);
    writer.remove(&[1], 0).unwrap();
    assert_ne!(reader.generation(), seen.0);
    assert_eq!(lookup(&reader, 1), invalid());
    assert!(writer.map_addr() != 0 && writer.map_addr() != reader.map_addr());
}

#[test]
fn vectors_of_another_kind_or_domain_do_not_meet() {
    let name = own_name("kinds");
    let _first = named(&name, 0).unwrap();
    let attr = AvAttr {
        name: Some(&name),
        map_addr: 0x1000,
        ..AvAttr::default()
    };
    let domain = |name: &str| Domain {
        name: name.into(),
        ..Domain::default()
    };
    let sockets = Arc::new(SocketAddr::new(FI_SOCKADDR_IN));
    assert_eq!(Av::open(&attr, sockets, &domain("test")).err(), Some(Errno(FI_EINVAL)));
    let map = AvAttr {
        av_type: FI_AV_MAP,
        ..attr.clone()
    };
    assert_eq!(
        Av::open(&map, Arc::new(StringAddr::of("fi_shm")), &domain("test")).err(),
        Some(Errno(FI_EINVAL))
    );
    let other = Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &domain("other")).unwrap();
    assert_eq!((insert(&other, &["z"]), other.map_addr()), ((Ok(1), vec![0]), 0x1000));
    let keys = Domain {
        auth_key_size: Some(0),
        ..domain("keys")
    };
    assert_eq!(
        Av::open(&attr, Arc::new(StringAddr::of("fi_shm")), &keys).err(),
        Some(Errno(FI_ENOSYS))
    );
}

#[test]
fn a_named_vector_grows() {
    const STEP: u32 = 10_000;
    let name = own_name("large");
    let writer = named(&name, 0).unwrap();
    let reader = named(&name, FI_READ).unwrap();
    for step in 0..10 {
        let names: Vec<u8> = (step * STEP..(step + 1) * STEP)
            .flat_map(|at| format!("{at}\0").into_bytes())
            .collect();
        assert_eq!(
            writer.insert(&names, STEP as usize, Insert::default()),
            Ok(STEP as usize)
        );
        let last = (step + 1) * STEP - 1;
        assert_eq!(reader.find(format!("{last}").as_bytes()), Some(last.into()));
        assert_eq!(lookup(&reader, last.into()), Ok(last.to_string()));
    }
}

#[test]
fn a_reader_never_sees_half_an_address() {
    const TURNS: u32 = 20_000;
    let name = own_name("torn");
    let writer = named(&name, 0).unwrap();
    let reader = named(&name, FI_READ).unwrap();
    let names = ["a".repeat(200), "b".repeat(180)];
    let done = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..TURNS {
                fill(&writer, &[&names[turn as usize % 2]]);
                assert_eq!(writer.remove(&[0], 0), Ok(()));
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            match lookup(&reader, 0) {
                Ok(name) => assert!(names.contains(&name), "{name}"),
                Err(errno) => assert_eq!(errno, Errno(FI_EINVAL)),
            }
        }
    });
}

/// The role and the vector's name of a process that another test started.
const ROLE: &str = "FI_TEST_AV_ROLE";

/// Runs this test program again, as the other process of a test. Says whether it was content.
fn other_process(role: &str, name: &str) -> bool {
    let program = std::env::current_exe().unwrap();
    let done = Command::new(program)
        .args(["--ignored", "--exact", "api::av::tests::shared::the_other_process"])
        .env(ROLE, format!("{role} {name}"))
        .output()
        .unwrap();
    done.status.success() && String::from_utf8_lossy(&done.stdout).contains("1 passed")
}

#[test]
#[ignore = "the other process of the tests below"]
fn the_other_process() {
    let asked = std::env::var(ROLE).unwrap();
    let (role, name) = asked.split_once(' ').unwrap();
    match role {
        "read" => {
            let av = named(name, FI_READ).unwrap();
            assert_eq!((lookup(&av, 0), lookup(&av, 1)), (Ok("a".into()), Ok("b".into())));
            assert_eq!((av.find(b"b"), av.find(b"c")), (Some(1), None));
        }
        "write" => {
            let av = named(name, 0).unwrap();
            assert_eq!(insert(&av, &["c", "a"]), (Ok(2), vec![2, 0]));
            assert_eq!(av.remove(&[1], 0), Ok(()));
        }
        "die" => {
            let av = named(name, 0).unwrap();
            fill(&av, &["d"]);
            // Nothing of ours runs any more, as after SIGKILL.
            std::process::abort();
        }
        _ => panic!("unknown role {role}"),
    }
}

#[test]
fn processes_share_a_vector() {
    let name = own_name("processes");
    let av = named(&name, 0).unwrap();
    fill(&av, &["a", "b"]);
    assert!(other_process("read", &name));
    assert!(!other_process("read", "never opened"));
    assert!(other_process("write", &name));
    assert_eq!((lookup(&av, 1), lookup(&av, 2)), (invalid(), Ok("c".into())));
    assert_eq!((av.find(b"c"), av.find(b"b")), (Some(2), None));
    assert_eq!(insert(&av, &["e"]), (Ok(1), vec![1]));
    assert!(!other_process("die", &name));
    assert_eq!(lookup(&av, 3), Ok("d".into()), "what the dead one inserted stays");
    assert_eq!(insert(&av, &["f"]), (Ok(1), vec![4]), "and its locks are gone");
}

#[test]
fn a_process_that_died_leaves_nothing_that_harms() {
    let name = own_name("dead");
    assert!(!other_process("die", &name));
    assert_eq!(named(&name, FI_READ).err(), Some(Errno(FI_ENOENT)));
    assert!(!other_process("die", &name));
    let av = named(&name, 0).unwrap();
    assert_eq!(insert(&av, &["x"]), (Ok(1), vec![0]));
}
