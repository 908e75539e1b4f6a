//! The secret that the endpoints of a job may share, and the proofs that one has it.
//!
//! A proof is HMAC-SHA256 under the secret, of all that tells it from every other: which end gives it, so that none can
//! be sent back to whoever made it; the numbers that both ends have drawn for this connection, so that none can be sent
//! a second time; the address that was dialed and the hello with the dialer's, so that it is no use towards anybody
//! else; and the answer that it stands behind. Knows no socket. Called by `introduction`; made by `provider`.

use super::handshake::Hello;
use crate::sys::shared;
use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) const PROOF: usize = 32;
pub(super) type Proof = [u8; PROOF];

const WORDS: usize = 4;
/// As long as the proofs are hard to forge, so that none is ever drawn twice.
pub(super) const NONCE: usize = WORDS * size_of::<u64>();
pub(super) type Nonce = [u8; NONCE];

/// Drawn by the system, for one connection.
pub(super) fn nonce() -> io::Result<Nonce> {
    let mut nonce = [0; NONCE];
    for word in nonce.chunks_exact_mut(size_of::<u64>()) {
        word.copy_from_slice(&shared::random()?.to_ne_bytes());
    }
    Ok(nonce)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Dialer,
    Acceptor,
}

/// What a proof is about, besides who gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transcript {
    pub dialed: Dialed,
    /// With the dialer's nonce.
    pub hello: [u8; Hello::SIZE],
    /// The acceptor's.
    pub challenge: Nonce,
}

/// Where a connection was made to, as both of its ends see it: address, port and context.
pub(super) type Dialed = [u8; 20];

pub(super) fn dialed(place: Option<SocketAddr>, context: u16) -> Dialed {
    let mut dialed = Dialed::default();
    let Some(place) = place else { return dialed };
    let ip = match place {
        SocketAddr::V4(v4) => v4.ip().to_ipv6_mapped(),
        // Each host has its own number for the interface.
        SocketAddr::V6(v6) => *v6.ip(),
    };
    let bytes = ip.octets().into_iter().chain(place.port().to_le_bytes());
    let bytes = bytes.chain(context.to_le_bytes());
    dialed.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    dialed
}

/// The secret. It is shown to nobody, nor told to the log.
#[derive(Clone)]
pub struct Secret(Arc<Hmac<Sha256>>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// None: no bytes are no secret.
    pub fn new(key: &[u8]) -> Option<Secret> {
        let keyed = Hmac::new_from_slice(key).ok().filter(|_| !key.is_empty())?;
        Some(Secret(Arc::new(keyed)))
    }

    /// Whether it was made of these bytes.
    #[cfg(test)]
    pub fn is(&self, key: &[u8]) -> bool {
        let sum = |keyed: &Hmac<Sha256>| Hmac::clone(keyed).finalize().into_bytes();
        Secret::new(key).is_some_and(|other| sum(&other.0) == sum(&self.0))
    }

    fn begin(&self, role: Role, about: &Transcript, said: &[u8]) -> Hmac<Sha256> {
        let label: &[u8; 16] = match role {
            Role::Dialer => b"lfrs-tcp dialer\0",
            Role::Acceptor => b"lfrs-tcp accept\0",
        };
        let mut mac = Hmac::clone(&self.0);
        // All but the last have one length, so that no two lists of parts are the same bytes.
        for part in [label, &about.dialed[..], &about.hello, &about.challenge, said] {
            mac.update(part);
        }
        mac
    }

    /// `said`: what the proof stands behind.
    pub(super) fn prove(&self, role: Role, about: &Transcript, said: &[u8]) -> Proof {
        self.begin(role, about, said).finalize().into_bytes().into()
    }

    /// Takes as long for every proof.
    pub(super) fn accepts(&self, proof: &[u8], role: Role, about: &Transcript, said: &[u8]) -> bool {
        self.begin(role, about, said).verify_slice(proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_good_for_one_end_of_one_connection() {
        let secret = Secret::new(b"secret").unwrap();
        let about = Transcript {
            dialed: dialed(Some("10.1.2.3:77".parse().unwrap()), 5),
            hello: [7; Hello::SIZE],
            challenge: [9; NONCE],
        };
        let good = secret.prove(Role::Dialer, &about, b"said");
        let accepts = |secret: &Secret, role, about: &Transcript, said: &[u8]| secret.accepts(&good, role, about, said);
        assert!(accepts(&secret, Role::Dialer, &about, b"said"));
        assert!(!accepts(&secret, Role::Acceptor, &about, b"said"));
        assert!(!accepts(&secret, Role::Dialer, &about, b"sad"));
        assert!(!accepts(
            &Secret::new(b"secreT").unwrap(),
            Role::Dialer,
            &about,
            b"said"
        ));
        let changed: [fn(&mut Transcript); 3] = [
            |about| about.dialed[19] ^= 1,
            |about| about.hello[0] ^= 1,
            |about| about.challenge[31] ^= 1,
        ];
        for change in changed {
            let mut other = about.clone();
            change(&mut other);
            assert!(!accepts(&secret, Role::Dialer, &other, b"said"));
        }
        assert!(!secret.accepts(&good[..31], Role::Dialer, &about, b"said"));
    }

    /// RFC 4231, the second case, through the same keyed state.
    #[test]
    fn it_is_hmac_sha256() {
        let mut mac = Hmac::clone(&Secret::new(b"Jefe").unwrap().0);
        mac.update(b"what do ya want for nothing?");
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        assert_eq!(bytes[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn nothing_shows_it() {
        let secret = Secret::new(b"hush").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret");
        assert!(Secret::new(b"").is_none());
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }

    #[test]
    fn an_address_is_the_same_from_both_ends() {
        let at = |text: &str| dialed(Some(text.parse().unwrap()), 3);
        assert_eq!(at("[fe80::1%3]:80"), at("[fe80::1%9]:80"));
        assert_eq!(at("10.0.0.1:80"), at("[::ffff:10.0.0.1]:80"));
        assert_ne!(at("10.0.0.1:80"), at("10.0.0.1:81"));
        assert_ne!(at("10.0.0.1:80"), dialed(Some("10.0.0.1:80".parse().unwrap()), 4));
    }
}
