//! Receives that several endpoints share: whichever a message comes to tells of the receive that it took.

use super::*;

/// Receives for two endpoints, each on a device of its own.
struct Sharers {
    card: Device,
    pool: Arc<SharedPool<Device>>,
    beds: [Bed; 2],
}

fn sharers() -> Sharers {
    let mut beds = [Bed::new(), Bed::new()];
    let card = Device::default();
    let memory = beds[0].memory.clone();
    let pool = Arc::new(SharedPool::new(card.clone(), memory, 3, 1, |_| {}));
    for bed in &mut beds {
        bed.end.share(&pool).unwrap();
        bed.accept();
    }
    Sharers { card, pool, beds }
}

impl Sharers {
    fn recv(&self, context: usize) -> Result<(), Refused> {
        self.pool.recv(&recv_of(self.beds[0].part(8), context))
    }

    fn id(&self, at: usize) -> u64 {
        self.card.script().receives[at].0
    }
}

#[test]
fn a_message_is_told_where_it_came() {
    let mut all = sharers();
    assert_eq!((all.recv(1), all.recv(2), all.recv(3)), (Ok(()), Ok(()), Ok(())));
    assert_eq!((all.recv(4), all.pool.posted()), (Err(Refused::Again), 3));
    let (first, second) = (all.id(0), all.id(1));
    all.beds[1].device.completes(first, DoneKind::Received, None);
    all.beds[0].device.completes(second, DoneKind::Written, None);
    assert_eq!(
        (all.beds[1].ends(), all.beds[0].ends()),
        (vec![(1, None)], vec![(2, None)])
    );
    assert_eq!(all.pool.posted(), 1);
    assert_eq!(all.recv(4), Ok(()));
    // A number that nobody posted, or again, says nothing.
    for id in [first, 99] {
        all.beds[0].device.completes(id, DoneKind::Received, None);
        assert_eq!(all.beds[0].ends(), []);
    }
    let asked = all.beds[0].device.script().asked.clone();
    assert_eq!(asked[..3], ["room", "share", "pair"]);
    // Two sends, the mark at their end, and all receives.
    assert_eq!(all.beds[0].device.script().room, 6);
}

#[test]
fn one_end_leaves_the_receives_to_the_others() {
    let mut all = sharers();
    assert_eq!((all.recv(1), all.recv(2)), (Ok(()), Ok(())));
    let (first, second) = (all.id(0), all.id(1));
    all.beds[0]
        .device
        .completes(first, DoneKind::Other, Some(Failure::TooLong));
    assert_eq!(all.beds[0].ends(), [(1, Some(Error::Truncated))]);
    assert_eq!(all.beds[0].end.happened(), Some(Happened::Closed));
    all.beds[1].device.completes(second, DoneKind::Received, None);
    assert_eq!((all.beds[1].ends(), all.pool.posted()), (vec![(2, None)], 0));
}

#[test]
fn what_cannot_be_posted_is_refused() {
    let mut all = sharers();
    let body = all.beds[0].part(8);
    let tagged = op::Recv {
        kind: MessageKind::Tagged,
        ..recv_of(body, 1)
    };
    let many = op::Recv {
        multi: Some(1),
        ..recv_of(body, 1)
    };
    let (strange, two) = (Lent::new(&[8], 0), Lent::new(&[4, 4], 0));
    let rows = [
        (tagged, Refused::Unsupported),
        (many, Refused::Unsupported),
        (recv_of(strange.iov(), 1), Refused::Invalid),
        (recv_of(two.iov(), 1), Refused::Invalid),
    ];
    for (recv, refused) in rows {
        assert_eq!(all.pool.recv(&recv), Err(refused));
    }
    for (errno, refused) in [(libc::ENOMEM, Refused::Again), (libc::EINVAL, Refused::Invalid)] {
        all.card.script().fails = Some(("shared receive", errno));
        assert_eq!(all.recv(1), Err(refused));
    }
    assert_eq!(all.pool.posted(), 0);
    assert_eq!(all.beds[0].recv(1), Err(Refused::Unsupported), "it has none of its own");
}

#[test]
fn sharing_begins_before_the_connection() {
    let all = sharers();
    let mut late = Bed::connected();
    assert!(late.end.share(&all.pool).is_err());
    let mut posted = Bed::new();
    posted.recv(1).unwrap();
    assert!(posted.end.share(&all.pool).is_err());
    let mut small = Bed::new();
    small.device.script().fails = Some(("room", libc::ENOMEM));
    assert_eq!(
        small.end.share(&all.pool).unwrap_err().raw_os_error(),
        Some(libc::ENOMEM)
    );
    small.device.script().fails = None;
    assert!(small.end.share(&all.pool).is_ok());
    assert!(small.end.share(&all.pool).is_err(), "once");
}
