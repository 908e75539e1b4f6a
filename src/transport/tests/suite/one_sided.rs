//! The part of the suite about what a card may do by itself: data with writes, many pieces and operations at once,
//! regions that are closed in the middle, atomics. All of it holds for every transport, by whatever way it goes.

use super::engines::{Side, sides};
use super::memory::{KEY, begin, ends, on_word, one_piece, open, open_to, rma};
use super::{Pair, bytes, until};
use crate::engine::Config;
use crate::engine::op::*;
use crate::engine::port::*;
use crate::mem::atomic::Op;
use crate::util::regions::{Regions, Rights};
use crate::util::user::Lent;
use std::sync::Arc;

fn progress<T: Transport>(sides: &mut [Side<T>; 2]) {
    sides.iter_mut().for_each(Side::progress);
}

fn nothing_is_left<T: Transport>(sides: &mut [Side<T>; 2]) {
    until("an end of all", || {
        progress(sides);
        sides.iter().all(|side| side.engine.leftovers() == [0; 5])
    });
}

/// The target hears of each write, with its data, before the message that was sent after it.
pub fn engines_write_with_remote_data<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let Limits { max_body, eager, .. } = sides[0].engine.transport().limits();
    let longest = max_body.max(eager + 1).max(100_000);
    let memory = Lent::new(&[longest], 0);
    open(&mut sides[1], &memory, Rights::BOTH);
    for (number, len) in [0, 8, max_body, eager + 1, longest, 0, 8].into_iter().enumerate() {
        let local = Lent::new(&[len / 2, len - len / 2], 0);
        local.set(&bytes(number as u32, len));
        let message = Lent::new(&[8], 0);
        sides[1].recv(7, &message);
        let write = Rma {
            data: Some(number as u64 | 1 << 31),
            inject: len <= 8,
            ..one_piece(&sides[0], Access::Write, &local, 0, number)
        };
        begin(&mut sides[0], &write);
        if write.inject {
            local.set(&vec![0xdd; len]);
        }
        sides[0].send(7, &message, CompletionLevel::Transmit).unwrap();
        until("both ends", || {
            progress(&mut sides);
            sides.iter().all(|side| side.ends.len() == 2)
        });
        let [told, received] = sides[1].ends[..] else {
            unreachable!()
        };
        let is_write = matches!(
            told.op,
            CompletedOp::Target {
                access: Access::Write,
                atomic: false,
                ..
            }
        );
        assert!(is_write && received.op == CompletedOp::Recv, "{:?}", sides[1].ends);
        assert_eq!((told.data, told.len, told.tell), (write.data, len, Tell::Queue));
        assert_eq!(told.source, Some(sides[1].peer));
        assert_eq!(memory.bytes()[..len], bytes(number as u32, len), "length {len}");
        sides.iter_mut().for_each(|side| side.ends.clear());
    }
    nothing_is_left(&mut sides);
}

/// Each ends once, whatever the order.
pub fn engines_work_in_pieces_and_in_many_operations_at_once<P: Pair>() {
    const MANY: usize = 100;
    let (mut sides, _keep) = sides::<P>(Config::default());
    if sides[0].engine.transport().limits().max_body < 256 {
        return;
    }
    let memory = Lent::new(&[MANY * 1000], 0);
    open(&mut sides[1], &memory, Rights::BOTH);
    let lens = [8, 96, 1000];
    let remote = |number: usize, len: usize| {
        let (at, cut) = (number as u64 * 1000, len / 4);
        let part = |addr, len| RemotePart { addr, len, key: KEY };
        // The second half before the first.
        RemoteIov::new([part(at + cut as u64, len - cut), part(at, cut)]).unwrap()
    };
    for access in [Access::Write, Access::Read] {
        let locals: Vec<Lent> = (0..MANY)
            .map(|number| {
                let len = lens[number % lens.len()];
                let local = Lent::new(&[1, len - 2, 1], 0);
                if access == Access::Write {
                    local.set(&bytes(number as u32, len));
                }
                local
            })
            .collect();
        for (number, local) in locals.iter().enumerate() {
            let op = Rma {
                remote: remote(number, local.iov().len()),
                ..one_piece(&sides[0], access, local, 0, number)
            };
            begin(&mut sides[0], &op);
        }
        until("all ends", || {
            progress(&mut sides);
            sides[0].ends.len() == MANY
        });
        let mut ended: Vec<_> = sides[0]
            .ends
            .iter()
            .map(|end| (end.context, end.len, end.failure))
            .collect();
        ended.sort_by_key(|(context, ..)| *context);
        let expected: Vec<_> = locals
            .iter()
            .enumerate()
            .map(|(at, local)| (at, local.iov().len(), None))
            .collect();
        assert_eq!(ended, expected);
        for (number, local) in locals.iter().enumerate() {
            assert_eq!(
                local.bytes(),
                bytes(number as u32, local.iov().len()),
                "{access:?} {number}"
            );
        }
        sides[0].ends.clear();
    }
    nothing_is_left(&mut sides);
}

/// Once a region is closed, nobody writes there; what was to do so fails.
pub fn engines_leave_a_closed_region_alone<P: Pair>() {
    for wait in 0..30 {
        let (mut sides, _keep) = sides::<P>(Config::default());
        let regions = Arc::new(Regions::new(false, false));
        let memory = Lent::new(&[50_000], 0);
        open_to(&mut sides[1], &regions, &memory, Rights::BOTH);
        let lens = [8, 200, 3000, 50_000];
        for (number, len) in lens.into_iter().cycle().take(20).enumerate() {
            let local = Lent::new(&[len], 1 + number as u8);
            let access = if number % 3 == 2 { Access::Read } else { Access::Write };
            rma(&mut sides[0], access, &local, 0, number);
        }
        for _ in 0..wait {
            progress(&mut sides);
        }
        regions.remove(KEY).expect("nobody is stopped");
        // The application's again.
        memory.set(&vec![0xaa; 50_000]);
        until("all ends", || {
            progress(&mut sides);
            sides[0].ends.len() == 20
        });
        assert_eq!(memory.bytes(), vec![0xaa; 50_000], "after {wait} polls");
        for (_, context, _, error) in ends(&sides[0]) {
            assert!(matches!(error, None | Some(Error::NoKey)), "{context}: {error:?}");
        }
        nothing_is_left(&mut sides);
    }
}

/// An endpoint with a card's atomics has no others, as those would not be atomic against the card's.
pub fn engines_execute_the_cards_atomics_and_no_other<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let OneSided { atomics, .. } = sides[0].engine.transport().one_sided();
    let memory = Lent::new(&[8], 0);
    open(&mut sides[1], &memory, Rights::BOTH);
    let before = 10u64;
    let [operand, compare, result] = [5, before, 0].map(|value| {
        let lent = Lent::new(&[8], 0);
        lent.set(&value.to_le_bytes());
        lent
    });
    let ops = [
        (Form::Base, Op::Write, 5),
        (Form::Base, Op::Sum, 15),
        (Form::Fetch, Op::Read, 10),
        (Form::Fetch, Op::Sum, 15),
        (Form::Compare, Op::Cswap, 5),
        (Form::Fetch, Op::Prod, 50),
        (Form::Base, Op::Min, 5),
    ];
    for (number, (form, op, after)) in ops.into_iter().enumerate() {
        memory.set(&before.to_le_bytes());
        result.set(&[0; 8]);
        let mut atomic = on_word(&sides[0], form, op, [&operand, &result], number);
        if form == Form::Compare {
            atomic.compare = compare.iov();
        }
        let side = &mut sides[0];
        let begun = side.engine.atomic(&atomic, &mut side.ends);
        if !atomics.is_empty() && !atomics.contains(&atomic.op) {
            assert_eq!(begun, Err(Refused::Unsupported));
            continue;
        }
        assert_eq!(begun, Ok(()));
        until("its end", || {
            progress(&mut sides);
            sides[0].ends.len() == 1
        });
        assert_eq!(ends(&sides[0]), [(CompletedOp::Atomic(form), number, 8, None)]);
        assert_eq!(memory.bytes(), u64::to_le_bytes(after), "{op:?}");
        let fetched = if form == Form::Base { 0 } else { before };
        assert_eq!(result.bytes(), fetched.to_le_bytes(), "{op:?}");
        sides[0].ends.clear();
    }
    nothing_is_left(&mut sides);
}

/// A target that counts what peers do is asked by all of them, also by those that have a card.
pub fn engines_ask_a_peer_that_counts<P: Pair>() {
    let (mut sides, _keep) = sides::<P>(Config::default());
    let memory = Lent::new(&[10_000], 0);
    let regions = Arc::new(Regions::new(false, false));
    // The region is open to all, but the endpoint counts.
    regions
        .add(super::memory::region(&memory, Rights::BOTH, false), KEY)
        .unwrap();
    sides[1].engine.expose_regions(regions, 0, true);
    let [local, back] = [0; 2].map(|_| Lent::new(&[10_000], 0));
    local.set(&bytes(3, 10_000));
    for (number, (access, iov)) in [(Access::Write, &local), (Access::Read, &back)].into_iter().enumerate() {
        rma(&mut sides[0], access, iov, 0, number);
        until("both ends", || {
            progress(&mut sides);
            sides.iter().all(|side| side.ends.len() == 1)
        });
        let target = CompletedOp::Target {
            access,
            key: KEY,
            atomic: false,
        };
        assert_eq!(ends(&sides[0]), [(CompletedOp::Rma(access), number, 10_000, None)]);
        assert_eq!(ends(&sides[1]), [(target, 0, 10_000, None)]);
        sides.iter_mut().for_each(|side| side.ends.clear());
    }
    assert_eq!(back.bytes(), local.bytes());
    nothing_is_left(&mut sides);
}
