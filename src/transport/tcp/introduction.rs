//! What each end makes of the bytes of the other until both are known: no socket, no clock.
//!
//! Without a secret, a hello (`Interview`) and its answer (`Introduction`). With one, the acceptor asks whoever says
//! hello to prove the secret, and tells nobody of it before that is done; then every answer has the acceptor's own
//! proof behind it. So a stranger who connects gets no proof to try secrets on, and nothing that it says reaches a
//! peer. An end that has a secret and one that has none refuse each other. Called by `listener` and `dialing`.

use super::handshake::{Answer, CALL, Hello, Stranger, Verdict};
use super::program_data;
use super::secret::{Dialed, NONCE, Nonce, PROOF, Proof, Role, Secret, Transcript, nonce};
use std::io;

/// What the acceptor wants to be proven: a nonce.
pub(super) struct Challenge;

impl Challenge {
    pub(super) const SIZE: usize = 8 + NONCE;
    const MAGIC: [u8; 8] = *b"lfrs-ask";

    fn encode(nonce: &Nonce) -> [u8; Challenge::SIZE] {
        let mut bytes = [0; Challenge::SIZE];
        let all = Challenge::MAGIC.iter().chain(nonce);
        bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Nonce> {
        bytes.strip_prefix(&Challenge::MAGIC)?.first_chunk().copied()
    }
}

/// Whether a program's data stands behind a hello for this context.
fn has_data(context: u16) -> bool {
    context == CALL
}

/// Whether a program's data stands behind an answer to a hello for this context.
fn is_answered_with_data(context: u16, verdict: u8) -> bool {
    has_data(context) && (verdict == Verdict::Welcome as u8 || verdict == Verdict::Rejected as u8)
}

/// The dialer's end.
pub(super) struct Introduction {
    secret: Option<Secret>,
    dialed: Dialed,
    context: u16,
    hello: [u8; Hello::SIZE],
    /// What the program gave fi_connect, if it is a call.
    data: Vec<u8>,
    /// The secret was proven, so that every answer must be.
    proven: Option<Transcript>,
    bytes: [u8; Answer::SIZE + program_data::SIZE + PROOF],
    got: usize,
}

/// What the acceptor said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Not all of it has come.
    Part,
    /// This is the reply.
    Say(Proof),
    /// With what the other program gave fi_accept or fi_reject.
    Answer(Answer, Vec<u8>),
    /// Whoever it is, it is no endpoint.
    Nonsense,
    /// An answer, and behind it what is no program's data.
    BadData,
    /// It does not prove the secret.
    Unproven,
}

impl Introduction {
    /// Completes the hello, which is to be said first. `data`: what the program gave fi_connect.
    pub(super) fn begin(
        mut hello: Hello,
        data: &[u8],
        dialed: Dialed,
        secret: Option<&Secret>,
    ) -> io::Result<Introduction> {
        hello.nonce = secret.map(|_| nonce()).transpose()?;
        Ok(Introduction {
            secret: secret.cloned(),
            dialed,
            context: hello.context,
            hello: hello.encode(),
            data: encoded(has_data(hello.context), data),
            proven: None,
            bytes: [0; Answer::SIZE + program_data::SIZE + PROOF],
            got: 0,
        })
    }

    /// The hello, and what stands behind it.
    pub(super) fn hello(&self) -> (&[u8; Hello::SIZE], &[u8]) {
        (&self.hello, &self.data)
    }

    /// How much of what comes is the answer, with the program's data behind it.
    fn answer_size(&self, verdict: u8) -> usize {
        let data = is_answered_with_data(self.context, verdict);
        Answer::SIZE + if data { program_data::SIZE } else { 0 }
    }

    /// How long what comes is, as far as that is known.
    fn wanted(&self) -> usize {
        const KIND: usize = 9;
        let Some((magic, [verdict])) = self
            .bytes
            .get(..KIND)
            .filter(|_| self.got >= KIND)
            .map(|kind| kind.split_at(8))
        else {
            return KIND;
        };
        match magic {
            magic if *magic == Challenge::MAGIC => Challenge::SIZE,
            // Whoever refuses a secret has none, or another.
            _ if self.proven.is_some() && *verdict != Verdict::Denied as u8 => self.answer_size(*verdict) + PROOF,
            _ => self.answer_size(*verdict),
        }
    }

    /// Where the next bytes go. To be filled again and again, until something was heard or nothing is there.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let wanted = self.wanted();
        self.bytes.get_mut(self.got..wanted).unwrap_or_default()
    }

    /// So many have come.
    pub(super) fn came(&mut self, count: usize) -> Heard {
        self.got += count;
        if self.got < self.wanted() {
            return Heard::Part;
        }
        self.got = 0;
        if let Some(challenge) = Challenge::decode(&self.bytes) {
            return self.challenged(challenge);
        }
        let Some(decoded) = self.bytes.first_chunk().and_then(Answer::decode) else {
            return Heard::Nonsense;
        };
        let (said, proof) = self.bytes.split_at(self.answer_size(decoded.verdict as u8));
        let proof = proof.get(..PROOF).unwrap_or_default();
        let data = match said.split_at(Answer::SIZE) {
            (_, []) => Some(&[][..]),
            (_, data) => program_data::decode(data),
        };
        let Some(data) = data.map(<[u8]>::to_vec) else {
            return Heard::BadData;
        };
        let holds = match (&self.secret, &self.proven) {
            (None, _) => true,
            (Some(_), _) if decoded.verdict == Verdict::Denied => true,
            // It has not understood the hello.
            (Some(_), None) => decoded.verdict == Verdict::Foreign,
            (Some(secret), Some(about)) => secret.accepts(proof, Role::Acceptor, about, said),
        };
        if holds {
            Heard::Answer(decoded, data)
        } else {
            Heard::Unproven
        }
    }

    fn challenged(&mut self, challenge: Nonce) -> Heard {
        let Some(secret) = self.secret.as_ref().filter(|_| self.proven.is_none()) else {
            return Heard::Nonsense;
        };
        let about = self.proven.insert(Transcript {
            dialed: self.dialed,
            hello: self.hello,
            challenge,
        });
        Heard::Say(secret.prove(Role::Dialer, about, &self.data))
    }
}

/// The acceptor's end.
pub(super) struct Interview {
    bytes: [u8; Hello::SIZE + program_data::SIZE],
    got: usize,
    /// Who is to prove the secret.
    asked: Option<(Introduced, Transcript)>,
}

/// What a dialer has said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Introduced {
    pub hello: Hello,
    /// Of a call: what the program gave fi_connect.
    pub data: Vec<u8>,
    /// What the acceptor's proofs are about, if there is a secret.
    about: Option<Transcript>,
}

impl Introduced {
    /// An answer to it, with the acceptor's proof if the dialer has given its own. `data`: what the program gave
    /// fi_accept or fi_reject.
    pub(super) fn answer(&self, answer: &Answer, data: &[u8], secret: Option<&Secret>) -> Vec<u8> {
        let mut bytes = answer.encode().to_vec();
        let with_data = is_answered_with_data(self.hello.context, answer.verdict as u8);
        bytes.extend(encoded(with_data, data));
        if let (Some(secret), Some(about)) = (secret, &self.about) {
            let proof = secret.prove(Role::Acceptor, about, &bytes);
            bytes.extend(proof);
        }
        bytes
    }
}

/// As it stands on the wire, where there may be some.
fn encoded(there: bool, data: &[u8]) -> Vec<u8> {
    if there {
        program_data::encode(data).to_vec()
    } else {
        Vec::new()
    }
}

/// What the dialer said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Not all of it has come.
    Part,
    /// This is to be asked.
    Ask([u8; Challenge::SIZE]),
    Known(Box<Introduced>),
    Stranger(Stranger),
}

impl Interview {
    pub(super) fn new() -> Interview {
        Interview {
            bytes: [0; Hello::SIZE + program_data::SIZE],
            got: 0,
            asked: None,
        }
    }

    /// Where the next bytes go. To be filled again and again, until something was told or nothing is there.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let wanted = match self.asked {
            Some(_) => PROOF,
            None if self.got < Hello::SIZE => Hello::SIZE,
            None => self.bytes.len(),
        };
        self.bytes.get_mut(self.got..wanted).unwrap_or_default()
    }

    /// So many have come. `dialed` tells where to, for a context.
    pub(super) fn came(&mut self, count: usize, secret: Option<&Secret>, dialed: impl FnOnce(u16) -> Dialed) -> Told {
        self.got += count;
        match self.asked.take() {
            None => self.greeted(secret, dialed),
            Some(asked) if self.got < PROOF => {
                self.asked = Some(asked);
                Told::Part
            }
            Some((known, about)) => {
                let proof = self.bytes.get(..PROOF).unwrap_or_default();
                let data = encoded(has_data(known.hello.context), &known.data);
                match secret.is_some_and(|secret| secret.accepts(proof, Role::Dialer, &about, &data)) {
                    true => Told::Known(Box::new(Introduced {
                        about: Some(about),
                        ..known
                    })),
                    false => Told::Stranger(Stranger::WrongSecret),
                }
            }
        }
    }

    fn greeted(&mut self, secret: Option<&Secret>, dialed: impl FnOnce(u16) -> Dialed) -> Told {
        // What a stranger sends besides is not waited for.
        if let Err(why) = Hello::begins(self.bytes.get(..self.got).unwrap_or_default()) {
            return Told::Stranger(why);
        }
        if self.got < Hello::SIZE {
            return Told::Part;
        }
        let Some((bytes, behind)) = self.bytes.split_first_chunk() else {
            return Told::Part;
        };
        let hello = match Hello::decode(bytes) {
            Ok(hello) => hello,
            Err(why) => return Told::Stranger(why),
        };
        let data = match has_data(hello.context) {
            true if self.got < self.bytes.len() => return Told::Part,
            true => program_data::decode(behind),
            false => Some(&[][..]),
        };
        let Some(data) = data.map(<[u8]>::to_vec) else {
            return Told::Stranger(Stranger::Data);
        };
        let (nonce_of_dialer, bytes) = (hello.nonce, *bytes);
        let known = Introduced {
            hello,
            data,
            about: None,
        };
        match (secret, nonce_of_dialer) {
            (None, None) => Told::Known(Box::new(known)),
            (None, Some(_)) => Told::Stranger(Stranger::HasSecret),
            (Some(_), None) => Told::Stranger(Stranger::NoSecret),
            (Some(_), Some(_)) => {
                let Ok(challenge) = nonce() else {
                    return Told::Stranger(Stranger::NoRandom);
                };
                let about = Transcript {
                    dialed: dialed(known.hello.context),
                    hello: bytes,
                    challenge,
                };
                self.got = 0;
                self.asked = Some((known, about));
                Told::Ask(Challenge::encode(&challenge))
            }
        }
    }
}
