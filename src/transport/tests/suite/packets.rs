//! Packets: all arrive, in order, where they are told; a full lane, a refusal and the end of a peer lose none.

use super::*;

pub fn bodies_of_every_length_arrive_in_order<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let lengths = lengths(a.limits().max_body);
    let mut taker = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
    for (number, len) in (0u32..).zip(&lengths) {
        // In turns from the engine's memory, and from the middle of an application's, which is in pieces.
        let whole = bytes(number, *len);
        let memory = Lent::new(&[len / 2, 3, len - len / 2 + 3], 0);
        memory.set(&[vec![1; 5], whole.clone(), vec![1]].concat());
        let iov = &memory.iov();
        let body = match number % 2 {
            _ if *len == 0 => Body::Empty,
            0 => Body::Bytes(&whole),
            _ => Body::User { iov, at: 5, len: *len },
        };
        push(&mut a, b_of_a, number, body, || taker.poll(&mut b, 100));
        memory.set(&vec![9; len + 6]); // `push` is done with it
    }
    let count = lengths.len();
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 100);
        taker.bodies.len() == count
    });
    let expected: Vec<(Header, usize)> = (0u32..)
        .zip(&lengths)
        .map(|(number, len)| (header(number), *len))
        .collect();
    assert_eq!(taker.came, expected);
    for (number, len) in (0u32..).zip(&lengths) {
        assert_eq!(taker.bodies[&number], bytes(number, *len));
    }
}

pub fn a_full_lane_loses_nothing<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let mut taker = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
    let len = a.limits().max_body / 2;
    let mut number = 0;
    for _ in 0..3 {
        let mut room = 1 << 20;
        while a.push(b_of_a, &header(number), Body::Bytes(&bytes(number, len)), None) == Push::Done {
            number += 1;
            room -= 1;
            assert!(room > 0, "a lane without end");
        }
        assert!(number > 0);
        until("what was pushed", || {
            a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
            taker.poll(&mut b, 7);
            taker.bodies.len() == number as usize
        });
        // Everything was received, so there is room again soon.
        push(&mut a, b_of_a, number, Body::Bytes(&bytes(number, len)), || {
            taker.poll(&mut b, 7)
        });
        number += 1;
    }
    until("the last", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 7);
        taker.bodies.len() == number as usize
    });
    assert_eq!(taker.numbers(), (0..number).collect::<Vec<_>>());
    assert!(taker.bodies.iter().all(|(number, body)| *body == bytes(*number, len)));
}

pub fn bodies_go_where_they_are_told<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let max = a.limits().max_body;
    let mut wishes = vec![Wish::Drop, Wish::Keep];
    for len in [0, 1, 50, max] {
        for at in [0, 1, 40, len, len + 9] {
            wishes.push(Wish::Into(at, len));
        }
    }
    let plan = wishes.clone();
    let mut taker = Taker::new(a_of_b, |header: &Header, _| plan[header.id as usize % plan.len()]);
    let lens = [1, 30, 50, max];
    let count = (wishes.len() * lens.len()) as u32;
    let len_of = |number: u32| lens[number as usize / wishes.len()];
    for number in 0..count {
        let body = bytes(number, len_of(number));
        push(&mut a, b_of_a, number, Body::Bytes(&body), || taker.poll(&mut b, 100));
    }
    let placed = (0..count)
        .filter(|number| wishes[*number as usize % wishes.len()] != Wish::Drop)
        .count();
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 100);
        taker.came.len() == count as usize && taker.bodies.len() == placed
    });
    for number in 0..count {
        let whole = bytes(number, len_of(number));
        let expected = match wishes[number as usize % wishes.len()] {
            Wish::Drop | Wish::Refuse => None,
            Wish::Keep => Some(whole),
            Wish::Into(at, room) => {
                let left = room.saturating_sub(at);
                let mut expected = vec![0xee; left];
                let fits = left.min(whole.len());
                expected[..fits].copy_from_slice(&whole[..fits]);
                Some(expected)
            }
        };
        assert_eq!(taker.bodies.get(&number), expected.as_ref(), "packet {number}");
    }
}

pub fn what_is_refused_comes_again<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let mut tries = HashMap::new();
    let mut taker = Taker::new(a_of_b, |header: &Header, _| {
        let tries: &mut u32 = tries.entry(header.id).or_default();
        *tries += 1;
        if *tries <= header.id % 4 {
            Wish::Refuse
        } else {
            Wish::Keep
        }
    });
    for number in 0..40 {
        let body = bytes(number, number as usize);
        push(&mut a, b_of_a, number, Body::Bytes(&body), || taker.poll(&mut b, 100));
    }
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 10);
        taker.poll(&mut b, 100);
        taker.bodies.len() == 40
    });
    assert_eq!(taker.numbers(), (0..40).collect::<Vec<_>>());
    assert!(
        taker
            .bodies
            .iter()
            .all(|(number, body)| *body == bytes(*number, *number as usize))
    );
    drop(taker);
    assert!(
        tries.iter().all(|(number, tries)| *tries == number % 4 + 1),
        "{tries:?}"
    );
}

pub fn both_ways_at_once<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let (mut at_a, mut at_b) = (
        Taker::new(b_of_a, |_: &Header, _| Wish::Keep),
        Taker::new(a_of_b, |_: &Header, _| Wish::Into(0, 200)),
    );
    const COUNT: u32 = 2000;
    let (mut from_a, mut from_b) = (0, 0);
    until("all packets of both", || {
        for _ in 0..3 {
            let body = bytes(from_a, 200);
            if from_a < COUNT && a.push(b_of_a, &header(from_a), Body::Bytes(&body), None) == Push::Done {
                from_a += 1;
            }
            if from_b < COUNT && b.push(a_of_b, &header(from_b), Body::Empty, None) == Push::Done {
                from_b += 1;
            }
        }
        at_a.poll(&mut a, 5);
        at_b.poll(&mut b, 5);
        at_a.bodies.len() + at_b.bodies.len() == 2 * COUNT as usize
    });
    let all: Vec<u32> = (0..COUNT).collect();
    assert_eq!((at_a.numbers(), at_b.numbers()), (all.clone(), all));
    assert!(at_b.bodies.iter().all(|(number, body)| *body == bytes(*number, 200)));
}

/// Memory is overwritten as soon as the transport is done with it, by the answer to `push` or by `Sink::sent`.
pub fn memory_is_used_until_that_is_told<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let len = a.limits().max_body / 2;
    let mut at_a = Taker::new(b_of_a, |_: &Header, _| Wish::Keep);
    let mut at_b = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
    const COUNT: u32 = 60;
    let filled = |number| {
        let memory = Lent::new(&[len / 2, len - len / 2], 0);
        memory.set(&bytes(number, len));
        memory
    };
    let memories: Vec<Lent> = (0..COUNT).map(filled).collect();
    let (mut later, mut told) = (0, 0);
    let mut number = 0;
    until("all packets and notices", || {
        if number < COUNT {
            let memory = memories[number as usize];
            let when = [When::Released, When::Transmitted][number as usize % 2];
            let token = Token::from(number);
            // Without a notice, and without memory, there is nothing to be told of either.
            let notice = (number % 5 > 0).then_some(Notice { token, when });
            let iov = &memory.iov();
            let body = Body::User { iov, at: 0, len };
            match a.push(b_of_a, &header(number), body, notice) {
                Push::Done => {
                    memory.set(&vec![9; len]);
                    number += 1;
                }
                Push::Later => {
                    assert!(P::PUSHES_LATER && notice.is_some());
                    later += 1;
                    number += 1;
                }
                Push::Full => {}
                other => panic!("{other:?}"),
            }
        }
        at_a.poll(&mut a, 10);
        for token in at_a.sent.drain(..) {
            told += 1;
            memories[token as usize].set(&vec![9; len]);
        }
        at_b.poll(&mut b, 10);
        at_b.bodies.len() == COUNT as usize && told == later
    });
    assert_eq!(later > 0, P::PUSHES_LATER);
    assert!(at_b.bodies.iter().all(|(number, body)| *body == bytes(*number, len)));
}

pub fn a_small_budget_is_enough<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    let mut taker = Taker::new(a_of_b, |_: &Header, _| Wish::Drop);
    for number in 0..50 {
        push(&mut a, b_of_a, number, Body::Bytes(&[1; 10]), || taker.poll(&mut b, 1));
    }
    until("all packets", || {
        a.poll(&mut Taker::new(b_of_a, |_: &Header, _| Wish::Keep), 1);
        let came = taker.poll(&mut b, 1);
        assert!(came <= 8, "{came} packets, one was asked for");
        taker.came.len() == 50
    });
}

pub fn memory_is_fetched_where_that_is_offered<P: Pair>() {
    let Ends {
        mut a,
        mut b,
        b_of_a,
        a_of_b,
        keep: _keep,
    } = P::pair();
    if !a.limits().can_get {
        return;
    }
    for (token, (len, at, part)) in (1..).zip([(1, 0, 1), (5000, 0, 5000), (100_000, 77, 90_000), (3, 2, 1)]) {
        let theirs = Lent::new(&[len / 3, len - len / 3], 0);
        theirs.set(&bytes(len as u32, len));
        let exposed = b
            .expose(a_of_b, &theirs.iov(), ExposedName::Sent(1))
            .expect("memory to fetch");
        let remote = exposed.remote;
        let ours = Lent::new(&[len / 2, 0, len - len / 2], 0xee);
        let mut taker = Taker::new(b_of_a, |_: &Header, _| Wish::Keep);
        let mut begun = None;
        until("room for a get", || {
            begun = Some(a.get(b_of_a, &remote, &ours.iov(), at, part, Some(token)));
            taker.poll(&mut a, 10);
            Taker::new(a_of_b, |_: &Header, _| Wish::Keep).poll(&mut b, 10);
            begun != Some(Get::Full)
        });
        match begun {
            Some(Get::Done) => assert_eq!(taker.finished, []),
            Some(Get::Later) => {
                until("the get", || {
                    taker.poll(&mut a, 10);
                    Taker::new(a_of_b, |_: &Header, _| Wish::Keep).poll(&mut b, 10);
                    !taker.finished.is_empty()
                });
                assert_eq!(taker.finished, [(token, Ok(()))]);
            }
            Some(Get::Unsupported) => continue,
            other => panic!("{other:?}"),
        }
        let mut expected = vec![0xee; len];
        expected[at..at + part].copy_from_slice(&bytes(len as u32, len)[at..at + part]);
        assert_eq!(ours.bytes(), expected);
        let Some(id) = exposed.id else { continue };
        // Nobody fetches it once that is over.
        b.unexpose(a_of_b, id);
        taker.finished.clear();
        until("an answer", || {
            begun = Some(a.get(b_of_a, &remote, &ours.iov(), at, part, Some(token)));
            taker.poll(&mut a, 10);
            Taker::new(a_of_b, |_: &Header, _| Wish::Keep).poll(&mut b, 10);
            begun != Some(Get::Full)
        });
        until("no bytes", || {
            taker.poll(&mut a, 10);
            begun != Some(Get::Later) || !taker.finished.is_empty()
        });
        assert!(begun != Some(Get::Done) && !taker.finished.contains(&(token, Ok(()))));
    }
}

pub fn the_end_of_a_peer_is_noticed<P: Pair>() {
    for push_too in [false, true] {
        let Ends {
            mut a,
            mut b,
            b_of_a,
            a_of_b,
            keep: _keep,
        } = P::pair();
        let mut taker = Taker::new(b_of_a, |_: &Header, _| Wish::Keep);
        let mut at_b = Taker::new(a_of_b, |_: &Header, _| Wish::Keep);
        push(&mut a, b_of_a, 0, Body::Empty, || {});
        push(&mut b, a_of_b, 0, Body::Empty, || {});
        until("a packet each", || {
            taker.poll(&mut a, 10);
            at_b.poll(&mut b, 10);
            taker.came.len() + at_b.came.len() == 2
        });
        drop(b);
        until("the end", || {
            if push_too {
                assert!(!matches!(
                    a.push(b_of_a, &header(1), Body::Empty, None),
                    Push::Unreachable(_)
                ));
            }
            taker.poll(&mut a, 10);
            taker.gone == [b_of_a]
        });
    }
}
