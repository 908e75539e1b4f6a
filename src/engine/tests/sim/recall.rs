//! Packets taken back: what lies in a lane, its receiver has not begun.

use super::*;

impl Wire {
    /// See `Transport::recall`. The die says how far it goes.
    pub(super) fn take_back(&mut self, to: PeerId, mut judge: impl FnMut(&Header, usize) -> Recall) -> Option<usize> {
        let mut world = self.world.borrow_mut();
        let [willing, able] = world.manner.recalls;
        // As for copies: nothing passes a body that lands late.
        if willing == 0 || world.manner.late > 0 || world.dead.contains(&to) {
            return None;
        }
        let lane = world.lanes.remove(&(self.me, to))?;
        let judged: Vec<(Recall, Flight)> = lane
            .into_iter()
            .map(|flight| (judge(&flight.header, flight.body.len()), flight))
            .collect();
        // In life the receiver may be found reading only after all has been judged.
        let refused = world.roll(16) >= willing;
        let (mut done, mut stopped) = (0, refused);
        let mut kept = VecDeque::new();
        for (recall, flight) in judged {
            // What the sender has yet to read stays, with all behind it.
            stopped |= flight.kept.is_some();
            if !stopped && world.roll(16) < able && world.carry_out(to, &flight, &recall) {
                done += 1;
                continue;
            }
            // A copy that fails may have copied some of it.
            if !stopped && world.roll(2) == 0 {
                world.carry_out(to, &flight, &recall);
            }
            stopped |= !matches!(recall, Recall::Leave);
            kept.push_back(flight);
        }
        world.lanes.insert((self.me, to), kept);
        world.recalled += done;
        if !stopped {
            self.passed.push(to);
        }
        (!refused).then_some(done)
    }
}

impl World {
    /// Does what a packet asks for, if its target allows that. Bytes that a read brings are there before it has ended.
    fn carry_out(&self, to: PeerId, flight: &Flight, recall: &Recall) -> bool {
        let (part, rights) = match recall {
            Recall::Write(part) => (part, Rights::WRITE),
            Recall::Read(part, _) => (part, Rights::READ),
            Recall::Leave | Recall::Stop => return false,
        };
        let found = self.regions[to as usize].find(0, part.key, part.addr, part.len, rights);
        let Some(theirs) = found.ok().filter(|found| !found.counted) else {
            return false;
        };
        match recall {
            Recall::Read(_, local) => drop(land(Moving::Get(theirs.memory, *local, 0, part.len))),
            _ => assert_eq!(theirs.memory.write(0, &flight.body), part.len),
        }
        true
    }
}
