//! Which key the device is told for a piece of memory.

use super::*;

#[test]
fn memory_is_known_by_its_newest_key_until_it_is_ended() {
    let card = Card::default();
    let memory = Registrations::new(Box::new(card.clone()));
    let buffer = Lent::new(&[100], 0);
    let whole = buffer.iov().only().unwrap();
    let (number, key) = memory.register(&whole, Access::default()).unwrap();
    assert_eq!(key, 101);
    let mut last = Default::default();
    assert_eq!(memory.key(&whole, false, &mut last), Some(1));
    assert_eq!(memory.key(&whole.part(90, 10), false, &mut last), Some(1));
    // A short region within it hides nothing that goes beyond.
    let (inner, _) = memory.register(&whole.part(10, 10), Access::default()).unwrap();
    assert_eq!(memory.key(&whole.part(15, 50), false, &mut Default::default()), Some(1));
    assert_eq!(memory.key(&whole.part(15, 5), false, &mut Default::default()), Some(2));
    let address = whole.addr();
    assert!(memory.has(address + 100, number) && !memory.has(address + 101, number));
    assert!(memory.has(address + 10, inner) && !memory.has(address + 9, inner) && !memory.has(address, 77));
    memory.deregister(number);
    assert_eq!(memory.key(&whole, false, &mut last), None, "though it was remembered");
    assert_eq!(memory.key(&whole.part(12, 2), false, &mut last), Some(2));
    memory.deregister(inner);
    memory.deregister(inner);
    assert_eq!(card.0.lock().unwrap().1, 0, "the device knows none of it");
    let long = Lent::new(&[1001], 0);
    let refused = memory.register(&long.iov().only().unwrap(), Access::default());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::ENOMEM));
}

/// Registrations of the same memory for other uses are told apart, whichever was used or made last.
#[test]
fn what_the_device_writes_has_a_key_that_lets_it() {
    let memory = Registrations::new(Box::new(Card::default()));
    let buffer = Lent::new(&[100], 0);
    let whole = buffer.iov().only().unwrap();
    let to_write = Access {
        local_write: true,
        ..Access::default()
    };
    let only = memory.register(&whole, Access::default()).unwrap();
    let mut last = Default::default();
    assert_eq!(memory.key(&whole, true, &mut last), Some(1), "the device judges");
    memory.register(&whole, to_write).unwrap();
    assert_eq!(memory.key(&whole, true, &mut last), Some(2));
    memory.register(&whole, Access::default()).unwrap();
    assert_eq!(memory.key(&whole, false, &mut Default::default()), Some(3));
    assert_eq!(memory.key(&whole, true, &mut Default::default()), Some(2));
    let mut read = Default::default();
    memory.key(&whole, false, &mut read);
    assert_eq!(
        memory.key(&whole, true, &mut read),
        Some(2),
        "the one that is remembered does not fit"
    );
    assert_eq!(memory.hold(&whole, true).unwrap().local_key(), 2);
    assert_eq!(memory.hold(&whole, false).unwrap().local_key(), 3);
    memory.deregister(only.0);
}
