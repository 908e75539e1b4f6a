//! What strangers say to an endpoint of provider tcp, from the first byte on: to its listener, as peers, and through a
//! whole engine, which sends, receives and works on memory meanwhile.
//!
//! An input begins with a byte of circumstances; then it is a list of steps, as for `packets`.

use super::scene::{MEMORY, PEERS, STEPS, Scene};
use crate::engine::port::PeerId;
use crate::engine::wire::Header;
use crate::transport::tcp::TcpTransport;
use crate::transport::tcp::fuzz::{self, Stranger};

/// As many connections may be open at the same time: one for each peer, and one that competes.
const STRANGERS: usize = PEERS as usize + 1;

type Crowd = [Option<Stranger>; STRANGERS];

impl Scene<'_, TcpTransport> {
    fn look(&mut self) {
        fuzz::look(self.engine.transport_mut());
        self.progress();
    }

    /// A connection of a peer that keeps to the rules up to here.
    fn meet(&mut self, crowd: &mut Crowd, which: u8) {
        let Some(mut stranger) = Stranger::connect(self.engine.transport(), which) else {
            return;
        };
        stranger.say_hello(which, 7, 0, None);
        for _ in 0..2 {
            self.look();
            stranger.listen(0);
        }
        stranger.confirm();
        self.look();
        crowd[usize::from(which) % STRANGERS] = Some(stranger);
    }

    /// Of one that may be any length, where the stream says another.
    fn say_packet(&mut self, stranger: &mut Stranger) {
        let (_, header, body) = self.packet();
        let len = match self.input.byte() {
            0 => self.input.word() as u32,
            1 => body.len() as u32 + 1,
            _ => body.len() as u32,
        };
        let header = header.map_or([0xee; Header::SIZE], |header| header.encode());
        stranger.packet(len, &header, &body);
    }

    fn say_hello(&mut self, stranger: &mut Stranger) {
        let (which, instance) = (self.input.byte(), u64::from(self.input.byte() % 4));
        let context = u16::from(self.input.byte() % 16 == 15);
        let change = (self.input.byte() % 4 == 0).then(|| (self.input.byte(), self.input.byte()));
        stranger.say_hello(which, instance, context, change);
    }

    fn say(&mut self, stranger: &mut Stranger, step: u8) {
        match step {
            0..=6 => self.say_packet(stranger),
            7 => stranger.pad(self.input.byte(), self.input.byte()),
            8 => {
                let len = usize::from(self.input.byte());
                let bytes: Vec<u8> = (0..len).map(|_| self.input.byte()).collect();
                stranger.say(&bytes);
            }
            9 => self.say_hello(stranger),
            10 => stranger.listen(self.input.byte() & self.input.byte()),
            11 => stranger.confirm(),
            _ => stranger.goodbye(),
        }
    }

    fn step(&mut self, crowd: &mut Crowd) {
        let step = self.input.byte() % 28;
        match step {
            0..=12 => {
                let which = self.input.byte();
                let place = usize::from(which) % STRANGERS;
                let taken = crowd[place].take();
                if let Some(mut stranger) = taken.or_else(|| Stranger::connect(self.engine.transport(), which)) {
                    self.say(&mut stranger, step);
                    crowd[place] = Some(stranger);
                }
            }
            13 => crowd[usize::from(self.input.byte()) % STRANGERS] = None,
            14..=16 => self.receive(),
            17 | 18 => self.send(),
            19 => self.rma(),
            20 => self.atomic(),
            21 => self.cancel(),
            22 => {
                let which = self.input.byte();
                self.meet(crowd, which);
            }
            _ => {
                for stranger in crowd.iter_mut().flatten() {
                    stranger.listen(0);
                }
            }
        }
        self.look();
    }
}

/// Whatever is said, memory stays what it is and an end is an end.
pub fn stream(data: &[u8]) {
    let (circumstances, steps) = data.split_first().unwrap_or((&0, &[]));
    let secret = (circumstances & 1 != 0).then_some(&b"secret"[..]);
    MEMORY.with(|memory| {
        let mut end = fuzz::open(secret).expect("a port of this machine");
        let known: Vec<PeerId> = fuzz::known(&mut end);
        assert_eq!(known, (0..PEERS).collect::<Vec<_>>());
        let mut scene = Scene::new(steps, memory, end);
        let mut crowd = Crowd::default();
        for which in 0..PEERS as u8 {
            if circumstances >> 1 & (1 << which) != 0 {
                scene.meet(&mut crowd, which);
            }
        }
        for _ in 0..STEPS {
            if scene.input.0.is_empty() {
                break;
            }
            scene.step(&mut crowd);
        }
        drop(crowd);
        for _ in 0..4 {
            scene.look();
        }
        drop(scene);
        memory.judge();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::op::{CompletedOp, Completion};

    /// Strangers that do as they should are peers, with and without a secret: inputs reach the engine.
    #[test]
    fn strangers_get_through() {
        for secret in [None, Some(&b"secret"[..])] {
            MEMORY.with(|memory| {
                let mut end = fuzz::open(secret).unwrap();
                fuzz::known(&mut end);
                // An untagged receive from anybody.
                let mut scene = Scene::new(&[0], memory, end);
                scene.receive();
                let mut crowd = Crowd::default();
                scene.meet(&mut crowd, 1);
                let header = Header::new(crate::engine::wire::Packet::Eager, 0);
                let header = Header { total: 3, ..header };
                crowd[1].as_mut().unwrap().packet(3, &header.encode(), b"abc");
                let mut told: Vec<Completion> = Vec::new();
                for _ in 0..4 {
                    fuzz::look(scene.engine.transport_mut());
                    scene.engine.progress(&mut told);
                }
                let came: Vec<_> = told.iter().map(|end| (end.op, end.len, end.failure)).collect();
                assert_eq!(came, [(CompletedOp::Recv, 3, None)]);
                drop(scene);
                memory.judge();
            });
        }
    }
}
