//! Which open fabric and domain a reply names, as they open and close, with hints that name one and without.

use super::*;
use crate::api::info::model::{DomainAttr, FabricAttr};

fn info(fabric: usize, domain: usize) -> Info {
    Info {
        fabric: Some(FabricAttr {
            fabric: Opaque(fabric),
            name: Some("net".into()),
            prov_name: Some("shm".into()),
            ..FabricAttr::default()
        }),
        domain: Some(DomainAttr {
            domain: Opaque(domain),
            name: Some("dom".into()),
            ..DomainAttr::default()
        }),
        ..Info::default()
    }
}

/// What hints with these instances are told; None: nothing fits.
fn told(open: &Instances, fabric: usize, domain: usize) -> Option<(usize, usize)> {
    let mut answer = info(0, 0);
    let there = open.tell(&mut answer, Some(&info(fabric, domain)));
    there.then(|| (answer.fabric.unwrap().fabric.0, answer.domain.unwrap().domain.0))
}

#[test]
fn the_first_is_told_or_the_one_asked_for() {
    let open = Instances(Lock::default());
    assert_eq!(
        (told(&open, 0, 0), told(&open, 1, 0), told(&open, 0, 1)),
        (Some((0, 0)), None, None)
    );
    open.add(90, None, "tcp", "net");
    open.add(91, Some(90), "", "dom");
    open.add(1, None, "SHM", "net");
    open.add(2, None, "shm", "net");
    open.add(3, None, "shm", "other");
    assert_eq!(told(&open, 0, 0), Some((1, 0)));
    open.add(21, Some(2), "", "dom");
    open.add(22, Some(2), "", "another");
    open.add(23, Some(2), "", "Dom");
    open.add(31, Some(3), "", "dom");
    let rows = [
        // (fabric, domain, expected)
        (0, 0, Some((1, 21))),
        (1, 0, Some((1, 0))),
        (2, 0, Some((2, 21))),
        (2, 23, Some((2, 23))),
        (0, 23, Some((2, 23))),
        (1, 23, None),
        (0, 22, None),
        (0, 31, None),
        (3, 0, None),
        (90, 0, None),
        (0, 91, None),
        (7, 7, None),
    ];
    for (fabric, domain, expected) in rows {
        assert_eq!(told(&open, fabric, domain), expected, "{fabric} {domain}");
    }
    let mut answer = info(5, 5);
    assert!(open.tell(&mut answer, None));
    assert_eq!(answer, info(1, 21));
}
