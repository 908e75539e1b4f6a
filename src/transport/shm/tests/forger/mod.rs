//! A malicious peer that knows the protocol: well-formed records, requests for help, region tables and control words
//! with wrong contents, against an endpoint whose engine runs. Memory that was never sent or registered must not get
//! out, no other memory may change, nobody may crash or hang, and an honest peer is served all the while.
//!
//! Every run is the same. `FORGER_ROUNDS` and `FORGER_SEED` make longer and other ones; `abi-tests/fuzz` uses them,
//! with AddressSanitizer.

mod guarded;

use super::*;
use crate::engine::Engine;
use crate::engine::op::{CompletedOp, Completion, CompletionLevel, MessageKind, Recv, RemoteIov, Rma, Send, Tell};
use crate::transport::shm::dialogue::SECOND_UNIT;
use crate::transport::shm::dual_copy::{Cut, HelperState, helper_word};
use crate::transport::shm::dual_copy::{RequestedMemory, encode_request};
use crate::transport::shm::region_table::{IN_SEVERAL, mark_in_entry};
use crate::util::regions::Region as Registered;
use guarded::Guarded;

/// Marsaglia's xorshift.
struct Dice(u64);

impl Dice {
    fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.word() % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// A number that may matter: small, near a length or a key in use, near the largest number, or any.
    fn number(&mut self) -> u64 {
        let near = self.of(&[
            0,
            1,
            7,
            8,
            64,
            100,
            8192,
            32 << 10,
            LONG as u64,
            1 << 20,
            u64::MAX,
            1 << 63,
            KEY,
        ]);
        match self.below(4) {
            0 => self.word(),
            1 => self.below(40),
            _ => near.wrapping_add(self.below(5)).wrapping_sub(2),
        }
    }
}

const LONG: usize = 200_000;
const SHORT: usize = 100;
const KEY: u64 = 77;
const HIDDEN: u64 = 78;
const READABLE: u64 = 79;
const TAG: u64 = 5;

// What each memory is filled with.
const SECRET: u8 = 0xa5;
const TO_HONEST: u8 = 0x5a;
const TO_FORGER: u8 = 0x11;
const SHOWN: u8 = 0x22;
const RECEIVED: u8 = 0x33;
const LOOT: u8 = 0x44;

type Party = Engine<ShmTransport>;

fn send(to: PeerId, body: UserIov, tag: u64) -> Send {
    Send {
        kind: MessageKind::Tagged,
        to,
        tag,
        data: None,
        body,
        inject: false,
        level: CompletionLevel::Inject,
        fence: false,
        context: 1,
        tell: Tell::Queue,
    }
}

fn recv(body: UserIov, from: Option<PeerId>, tag: u64) -> Recv {
    Recv {
        kind: MessageKind::Tagged,
        from,
        tag,
        ignore: 0,
        body,
        multi: None,
        context: 2,
        tell: Tell::Queue,
    }
}

struct Story {
    dice: Dice,
    /// Names of messages that the victim has under way, to any peer.
    offered: Vec<ExposedName>,
    secret: Guarded,
    to_honest: Guarded,
    to_forger: Guarded,
    shown: Guarded,
    hidden: Guarded,
    readable: Guarded,
    received: Guarded,
    at_honest: Guarded,
    visited: Guarded,
    loot: Guarded,
}

impl Story {
    fn new(seed: u64) -> Story {
        Story {
            dice: Dice(seed | 1),
            offered: Vec::new(),
            secret: Guarded::new(LONG, SECRET),
            to_honest: Guarded::new(LONG, TO_HONEST),
            to_forger: Guarded::new(LONG, TO_FORGER),
            shown: Guarded::new(LONG, SHOWN),
            hidden: Guarded::new(LONG, SECRET),
            readable: Guarded::new(LONG, SHOWN),
            received: Guarded::new(LONG, RECEIVED),
            at_honest: Guarded::new(LONG, RECEIVED),
            visited: Guarded::new(LONG, RECEIVED),
            loot: Guarded::new(LONG, LOOT),
        }
    }

    fn regions(&self) -> Arc<Regions> {
        let regions = Arc::new(Regions::new(false, true));
        let rows = [
            (KEY, &self.shown, Rights::BOTH, true),
            (HIDDEN, &self.hidden, Rights::BOTH, false),
            (READABLE, &self.readable, Rights::READ, true),
        ];
        for (key, memory, rights, enabled) in rows {
            let region = Registered {
                memory: memory.iov(),
                rights,
                base: 0,
                enabled,
                endpoint: None,
                counted: false,
            };
            regions.add(region, key).unwrap();
        }
        regions
    }

    /// A header of the engine's, with any contents.
    fn words(&mut self, len: usize) -> [u64; 4] {
        let dice = &mut self.dice;
        let packet = 1 + dice.below(17);
        let flags = dice.of(&[0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 1 | 4, 32 | 2, 255]);
        let code = dice.below(40) | dice.below(20) << 8;
        let first = packet | flags << 8 | code << 16 | (dice.number() & 0xffff_ffff) << 32;
        let mut total = dice.number();
        if dice.below(2) == 0 {
            total = len as u64;
        }
        [first, dice.number(), dice.number(), total]
    }

    /// A record of the engine's, with any contents.
    fn record(&mut self, forger: &mut ShmTransport, to: PeerId) {
        let dice = &mut self.dice;
        let mut body = vec![9u8; dice.of(&[0, 0, 1, 8, 24, 48, 96, 96, 192, 1000, MAX_BODY])];
        match dice.below(3) {
            // As if it were a list of pieces.
            0 => body
                .chunks_exact_mut(8)
                .for_each(|word| word.copy_from_slice(&dice.number().to_le_bytes())),
            1 if body.len() == Remote::MAX => body = self.name(forger).bytes().to_vec(),
            _ => {}
        }
        let words = self.words(body.len());
        self.push(forger, to, words, &body);
    }

    /// A turn of the dialogue in up to 18 parts, two more than there can be, the last of which may claim that one
    /// follows.
    fn turn(&mut self, forger: &mut ShmTransport, to: PeerId) {
        if self.dice.below(4) > 0 {
            // Too long for a small ring: then there is room for parts.
            self.push(forger, to, header(0).words(), &[9; MAX_BODY]);
        }
        let wrong = self.dice.below(19);
        for part in 0..1 + self.dice.below(18) {
            let (mut words, mut len) = (
                header(0).words(),
                self.dice.of(&[0, 8, 24, 100, 4000, MAX_BODY, MAX_WRITE]),
            );
            if self.dice.below(4) == 0 {
                len |= self.dice.of(&[1, 2, 6, 7, 15]) * SECOND_UNIT;
            }
            if part == wrong {
                len = self.dice.of(&[len, len, MAX_WRITE + 1, (1 << 15) - 1]);
                words = self.words(len);
            }
            let goes_on = self.dice.below(8) > 0;
            let out = forger.peers.get_mut(to).and_then(|peer| peer.out.as_mut());
            out.into_iter().for_each(|out| out.forge(words, len, goes_on));
        }
    }

    /// Memory of the forger's own, named in full or with something wrong.
    fn name(&mut self, forger: &mut ShmTransport) -> Remote {
        let named = self.named();
        forger.publish_regions(&Arc::new(Regions::new(false, true)), 1);
        let remote = forger.expose(0, &self.loot.iov(), named).unwrap().remote;
        if self.dice.below(4) == 0 {
            // Instance, length of the first piece, count, or kind of name. Not an address: all this is one process.
            let at = self.dice.of(&[0, 8, 14, 15]);
            let mut bytes = remote.bytes().to_vec();
            match at {
                8 => bytes[8..12].copy_from_slice(&(self.dice.below(LONG as u64 + 1) as u32).to_le_bytes()),
                14 => bytes[14] = 0,
                _ => bytes[at] ^= 1 << self.dice.below(8),
            }
            return Remote::new(&bytes).unwrap();
        }
        remote
    }

    fn named(&mut self) -> ExposedName {
        let part = RemotePart {
            addr: self.dice.number(),
            len: self.dice.number() as usize,
            key: self.dice.of(&[KEY, HIDDEN, READABLE, 3]),
        };
        match self.dice.below(5) {
            0 => ExposedName::Sent(self.dice.number()),
            1 | 2 if !self.offered.is_empty() => self.dice.of(&self.offered),
            _ => ExposedName::Region(part),
        }
    }

    fn ask_for_help(&mut self, forger: &mut ShmTransport, to: PeerId) {
        let dice = &mut self.dice;
        let (at, len) = (dice.of(&[0, 0, 5, LONG - 1]), dice.of(&[1, 8192, LONG, 2 * LONG]));
        let piece = dice.of(&[len, len.div_ceil(2), 4096.max(len.div_ceil(100))]);
        let Some(cut) = Cut::checked(at as u64, len as u64, piece as u64, len.div_ceil(piece) as u64) else {
            return;
        };
        let number = dice.below(3) as u32 + 1;
        let access = dice.of(&[Access::Read, Access::Read, Access::Write]);
        let ours = RequestedMemory {
            name: self.named(),
            access,
        };
        let theirs = self.name(forger);
        let Some((mut words, body)) = encode_request(number, &cut, &theirs, &ours) else {
            return;
        };
        if self.dice.below(8) == 0 {
            let word = self.dice.below(4) as usize;
            words[word] = words[word].wrapping_add(self.dice.number());
        }
        self.pieces(forger, to, number, cut.count);
        self.push(forger, to, words, &body);
    }

    /// Writes which pieces of a dual copy are left, for the victim to find.
    fn pieces(&mut self, forger: &ShmTransport, to: PeerId, number: u32, count: u16) {
        let lane = forger.peers.get(to).and_then(|peer| forger.inbox.lane(peer.lane?));
        let Some(lane) = lane else { return };
        let back = self.dice.of(&[u64::from(count), u64::from(count), 0xffff, 1]);
        lane.pieces().store(u64::from(number) << 32 | back, Ordering::Release);
    }

    fn push(&mut self, forger: &mut ShmTransport, to: PeerId, words: [u64; 4], body: &[u8]) {
        let connected = forger.peers.get(to).is_some_and(|peer| peer.out.is_some());
        if connected || forger.connect_out(to).is_ok() {
            if let Some(out) = forger.peers.get_mut(to).and_then(|peer| peer.out.as_mut()) {
                let _ = out.push_words(words, body);
            }
        }
    }

    /// Writes any value into a word that a peer may write by the protocol.
    fn control_words(&mut self, forger: &ShmTransport, to: PeerId) {
        let dice = &mut self.dice;
        let Some(out) = forger.peers.get(to).and_then(|peer| peer.out.as_ref()) else {
            return;
        };
        let state = dice.of(&[HelperState::Working, HelperState::Over, HelperState::Failed]);
        match dice.below(6) {
            0 => out.mark.word().store(
                dice.of(&[0, 1, IN_SEVERAL, mark_in_entry(0), u64::MAX]),
                Ordering::SeqCst,
            ),
            1 => out.lane.pieces().store(dice.word(), Ordering::SeqCst),
            2 => out.lane.helped().store(
                helper_word(dice.below(4) as u32, state, dice.word() as u16),
                Ordering::SeqCst,
            ),
            3 => out.lane.sender().store(dice.below(4) & !1, Ordering::SeqCst),
            4 => out.header.ring_bell(dice.below(2048) as usize),
            _ => {
                let position = dice.number();
                if let Some(own) = forger.peers.get(to).and_then(|peer| forger.inbox.lane(peer.lane?)) {
                    own.seen().store(position, Ordering::SeqCst);
                }
            }
        }
    }

    /// Shows regions in the forger's table that do not exist, or not so.
    fn forge_table(&mut self, forger: &ShmTransport) {
        let header = &forger.own.header;
        if layout::allocate_entries(forger.own.file(), 64).is_err() {
            return;
        }
        let entry = self.dice.below(3) as usize;
        let loot = self.loot.iov();
        let inside = loot.address(0) as u64;
        let words = [
            1 + 2 * self.dice.below(5),
            self.dice.of(&[1, 2, 3]),
            self.dice.number(),
            inside,
            self.dice.below(LONG as u64 + 1),
            self.dice.below(8),
        ];
        for (word, value) in words.into_iter().enumerate() {
            header.entry_word(entry, word).store(value, Ordering::SeqCst);
        }
        header.set_entries_used(self.dice.of(&[3, 64, 1 << 40]));
        header.changes().fetch_add(1, Ordering::SeqCst);
    }

    /// The victim reads or writes a region that the forger shows.
    fn visit(&mut self, victim: &mut Party, forger: PeerId, report: &mut Vec<Completion>) {
        let len = self.dice.of(&[8, 5000, 20_000, LONG]);
        let part = RemotePart {
            addr: self.dice.below(LONG as u64),
            len,
            key: self.dice.of(&[1, 2, 3]),
        };
        let (access, local) = match self.dice.below(2) {
            0 => (Access::Read, self.visited.iov()),
            _ => (Access::Write, self.to_forger.iov()),
        };
        let rma = Rma {
            access,
            to: forger,
            local: local.part(0, len),
            remote: RemoteIov::one(part),
            data: None,
            inject: false,
            level: CompletionLevel::Delivery,
            fence: false,
            context: 3,
            tell: Tell::Queue,
        };
        let _ = victim.rma(&rma, report);
    }

    /// The forger opens an endpoint, attacks and closes, while the others exchange messages.
    fn round(&mut self, dir: &Dir, victim: &mut Party, honest: &mut Party) {
        let mut forger = dir.open_quietly("forger");
        let (mut told, mut at_honest, mut heard) = (Vec::new(), Vec::new(), Kept::default());
        let to_victim = forger.peer(b"victim").unwrap();
        let peer = |party: &mut Party, name: &[u8]| party.transport_mut().peer(name).unwrap();
        let (to_forger, to_honest) = (peer(victim, b"forger"), peer(victim, b"honest"));
        let _ = victim.send(&send(to_forger, self.to_forger.iov(), TAG), &mut told);
        let _ = victim.send(&send(to_honest, self.to_honest.iov(), TAG), &mut told);
        let _ = victim.recv(&recv(self.received.iov(), Some(to_forger), TAG), &mut told);
        // Until both have taken up each other's ring.
        self.push(&mut forger, to_victim, header(0).words(), &[]);
        for _ in 0..40 {
            victim.progress(&mut told);
            forger.poll(&mut heard, 64);
        }
        self.offered = victim.unfinished_names();
        for _ in 0..20 {
            match self.dice.below(9) {
                0..=2 => self.record(&mut forger, to_victim),
                3 | 4 => self.ask_for_help(&mut forger, to_victim),
                5 => self.control_words(&forger, to_victim),
                6 => self.forge_table(&forger),
                7 => self.turn(&mut forger, to_victim),
                _ => self.visit(victim, to_forger, &mut told),
            }
            victim.progress(&mut told);
            if self.dice.below(4) == 0 {
                forger.poll(&mut heard, 64);
            }
        }
        // The honest peer receives its message, and sends one.
        let from = peer(honest, b"victim");
        honest
            .recv(&recv(self.at_honest.iov(), None, TAG), &mut at_honest)
            .unwrap();
        let start = Instant::now();
        while !at_honest.iter().any(|end| end.op == CompletedOp::Recv) {
            victim.progress(&mut told);
            honest.progress(&mut at_honest);
            assert!(start.elapsed() < PATIENCE, "the honest peer is not served");
        }
        assert!(self.at_honest.bytes().iter().all(|byte| *byte == TO_HONEST));
        drop(forger);
        let _ = (
            honest.send(
                &send(from, self.to_honest.iov().part(0, SHORT), TAG + 1),
                &mut at_honest,
            ),
            start,
        );
        let short = self.received.iov().part(0, SHORT);
        victim.recv(&recv(short, Some(to_honest), TAG + 1), &mut told).unwrap();
        let came = |told: &Vec<Completion>| told.iter().any(|end| end.op == CompletedOp::Recv && end.tag == TAG + 1);
        while !came(&told) || victim.in_flight() > 0 {
            victim.progress(&mut told);
            honest.progress(&mut at_honest);
            assert!(
                start.elapsed() < PATIENCE,
                "what waits for the forger does not end with it"
            );
        }
        for end in &told {
            assert!(end.len <= LONG, "{end:?}");
        }
        self.judge();
    }

    fn judge(&mut self) {
        let all = [
            &self.secret,
            &self.to_honest,
            &self.to_forger,
            &self.hidden,
            &self.readable,
        ];
        all.into_iter().for_each(Guarded::assert_whole);
        for memory in [&self.shown, &self.received, &self.at_honest, &self.visited, &self.loot] {
            memory.assert_guards();
            let bytes = memory.bytes();
            let got_out = |byte: &u8| *byte == SECRET || *byte == TO_HONEST;
            let is_honest = core::ptr::eq(memory, &self.at_honest) || core::ptr::eq(memory, &self.received);
            assert!(
                is_honest || !bytes.iter().any(got_out),
                "what was not the forger's got out"
            );
            memory.reset();
        }
    }
}

impl Dir {
    fn open_quietly(&self, address: &str) -> ShmTransport {
        let config = Config {
            warn: |_| {},
            ..self.config()
        };
        ShmTransport::open(address, &config).unwrap()
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

#[test]
fn a_forger_gets_nothing_and_breaks_nothing() {
    let dir = Dir::new();
    let mut story = Story::new(setting("FORGER_SEED", 0x9e37_79b9_7f4a_7c15));
    let mut victim = Engine::new(dir.open_quietly("victim"));
    let mut honest = Engine::new(dir.open_quietly("honest"));
    victim.expose_regions(story.regions(), 1, false);
    for _ in 0..setting("FORGER_ROUNDS", 60) {
        story.round(&dir, &mut victim, &mut honest);
    }
}
