//! Endpoints that share a secret, that have different ones, and those who listen and repeat what they heard.

use super::*;
use crate::engine::Engine;
use crate::engine::op::{Completion, CompletionLevel, Error, MessageKind, Send, Tell};
use crate::engine::wire::Packet;
use crate::util::user::Lent;
use handshake::{Answer, Hello, Stranger, Verdict};
use introduction::{Heard, Interview, Introduction, Told};
use secret::{Dialed, dialed};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

const KEY: &[u8] = b"correct horse battery staple";

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn log(line: &str) {
    LOG.lock().unwrap().push(line.to_owned());
}

fn with(key: &[u8]) -> Config {
    Config {
        secret: Secret::new(key),
        warn: log,
        info: log,
        ..config()
    }
}

fn header() -> Header {
    Header::new(Packet::Eager, 1)
}

#[test]
fn who_shares_a_secret_meets() {
    for place in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
        let [mut a, mut b] = [(); 2].map(|()| open_at(place, &with(KEY)));
        let reachable = |end: &TcpTransport| {
            let mut place = end.place;
            if place.ip().is_unspecified() {
                place.set_ip([127, 0, 0, 1].into());
            }
            address::of(&place)
        };
        let (b_of_a, a_of_b) = (a.peer(&reachable(&b)).unwrap(), b.peer(&reachable(&a)).unwrap());
        connect(&mut a, b_of_a, &mut b, a_of_b);
        let mut sink = Kept::default();
        assert_eq!(a.push(b_of_a, &header(), Body::Bytes(b"hello"), None), Push::Done);
        until("a packet", || {
            b.poll(&mut sink, 10);
            !sink.packets.is_empty()
        });
        assert_eq!((sink.packets[0].0, &sink.packets[0].2[..]), (a_of_b, &b"hello"[..]));
    }
}

/// Contexts share a port, and so the secret of the endpoint.
#[test]
fn contexts_have_the_secret_of_their_endpoint() {
    let first = open_at("127.0.0.1:0", &with(KEY));
    let second = TcpTransport::open(&address::context(&first.local_address(), 1), &config()).unwrap();
    assert!(second.secret().unwrap().is(KEY));
    assert!(first.secret().unwrap().is(KEY));
}

/// Neither hears anything of the other, and the log says what to do, but not the secret.
#[test]
fn nobody_else_does() {
    for (ours, theirs) in [(KEY, &b"wrong"[..]), (KEY, b""), (b"", KEY)] {
        let (mut a, mut b) = (
            open_at("127.0.0.1:0", &with(ours)),
            open_at("127.0.0.1:0", &with(theirs)),
        );
        let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
        let (mut at_a, mut at_b) = (Kept::default(), Kept::default());
        let (mut of_a, mut of_b) = (Push::Full, Push::Full);
        until("two refusals", || {
            for (end, to, sink, last) in [
                (&mut a, b_of_a, &mut at_a, &mut of_a),
                (&mut b, a_of_b, &mut at_b, &mut of_b),
            ] {
                if *last == Push::Full {
                    *last = end.push(to, &header(), Body::Empty, None);
                }
                end.poll(sink, 10);
            }
            of_a != Push::Full && of_b != Push::Full
        });
        let denied = Push::Unreachable(Unreached::Denied);
        assert_eq!((of_a, of_b), (denied, denied));
        assert!(at_a.met.is_empty() && at_b.met.is_empty() && at_a.packets.is_empty() && at_b.packets.is_empty());
    }
    let log = LOG.lock().unwrap().join("\n");
    assert!(
        log.contains("auth_key") && log.contains("FI_TCP_AUTH_KEY_FILE"),
        "{log}"
    );
    assert!(!log.contains("horse") && !log.contains("wrong"), "{log}");
}

/// Whatever is sent to a peer that refuses us ends in an error, be it begun before or after that.
#[test]
fn nothing_is_sent_to_who_refuses() {
    for level in [
        CompletionLevel::Inject,
        CompletionLevel::Transmit,
        CompletionLevel::Delivery,
    ] {
        for (len, inject) in [(8, true), (8, false), (10_000, false), (1 << 20, false)] {
            let [mut a, mut b] = [KEY, b"wrong"].map(|key| Engine::new(open_at("127.0.0.1:0", &with(key))));
            let to = a.transport_mut().peer(&b.transport().local_address()).unwrap();
            let memory = Lent::new(&[len], 0);
            let mut ends: Vec<Completion> = Vec::new();
            for context in 0..3 {
                let send = Send {
                    kind: MessageKind::Tagged,
                    to,
                    tag: 1,
                    data: None,
                    body: memory.iov(),
                    inject,
                    level,
                    fence: false,
                    context,
                    tell: Tell::Queue,
                };
                let mut begun = a.send(&send, &mut ends).is_ok();
                until("its end", || {
                    a.progress(&mut ends);
                    b.progress(&mut Vec::new());
                    begun &= ends.len() <= context;
                    !begun
                });
            }
            let all_failed = ends
                .iter()
                .all(|end| end.failure.map(|failure| failure.error) == Some(Error::Unreachable(Unreached::Denied)));
            assert!(all_failed, "{level:?} {len} {inject}: {ends:?}");
            assert_eq!(b.malformed(), 0);
        }
    }
}

/// Who answers without asking for the secret is no peer, though it welcomes everybody.
#[test]
fn a_welcome_without_a_proof_is_none() {
    let mut a = open_at("127.0.0.1:0", &with(KEY));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = a.peer(&address::of(&listener.local_addr().unwrap())).unwrap();
    a.dial(to);
    let (mut stream, _) = listener.accept().unwrap();
    let welcome = Answer {
        verdict: Verdict::Welcome,
        instance: 7,
    };
    std::io::Write::write_all(&mut stream, &welcome.encode()).unwrap();
    let (mut sink, mut end) = (Kept::default(), Push::Full);
    until("a refusal", || {
        a.poll(&mut sink, 10);
        end = a.push(to, &header(), Body::Empty, None);
        end != Push::Full
    });
    assert_eq!(end, Push::Unreachable(Unreached::Denied));
    assert!(sink.met.is_empty());
}

/// Strangers who are asked and say nothing are as few, and as short, as those who say nothing at all.
#[test]
fn who_is_asked_and_says_nothing_is_a_stranger_still() {
    let mut a = open_at("127.0.0.1:0", &with(KEY));
    let mut sink = Kept::default();
    let hello = Hello {
        from: address::of(&"127.0.0.1:9".parse().unwrap()),
        instance: 5,
        context: 0,
        nonce: Some([1; secret::NONCE]),
    };
    let crowd: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(a.place).unwrap();
            std::io::Write::write_all(&mut stream, &hello.encode()).unwrap();
            stream
        })
        .collect();
    until("guests", || {
        a.poll(&mut sink, 10);
        a.listener.as_ref().unwrap().guests() > 200
    });
    assert!(!a.desk.has_arrivals.load(Ordering::Relaxed));
    let mut b = open_at("127.0.0.1:0", &with(KEY));
    let (b_of_a, a_of_b) = numbers(&mut a, &mut b);
    connect(&mut b, a_of_b, &mut a, b_of_a);
    // All that came before it were accepted.
    assert!(
        (200..=256).contains(&a.listener.as_ref().unwrap().guests()),
        "{}",
        a.listener.as_ref().unwrap().guests()
    );
    drop(crowd);
}

// ---- what is said, without sockets ----

fn place(text: &str) -> Dialed {
    dialed(Some(text.parse().unwrap()), 0)
}

fn hello(instance: u64) -> Hello {
    Hello {
        from: address::of(&"127.0.0.1:5".parse().unwrap()),
        instance,
        context: 0,
        nonce: None,
    }
}

fn tell(interview: &mut Interview, bytes: &[u8], at: Dialed, secret: Option<&Secret>) -> Told {
    let mut told = Told::Part;
    // Byte by byte, as a network may.
    for byte in bytes {
        assert_eq!(told, Told::Part);
        interview.room()[0] = *byte;
        told = interview.came(1, secret, |_| at);
    }
    told
}

fn hear(introduction: &mut Introduction, bytes: &[u8]) -> Heard {
    let mut heard = Heard::Part;
    for byte in bytes {
        assert_eq!(heard, Heard::Part);
        introduction.room()[0] = *byte;
        heard = introduction.came(1);
    }
    heard
}

/// What the dialer says first.
fn first_of(introduction: &Introduction) -> Vec<u8> {
    let (hello, data) = introduction.hello();
    [hello, data].concat()
}

const WELCOME: Answer = Answer {
    verdict: Verdict::Welcome,
    instance: 9,
};

/// A connection as it should be; what each end said.
fn honest(secret: &Secret) -> [Vec<u8>; 4] {
    let at = place("10.0.0.1:80");
    let mut introduction = Introduction::begin(hello(7), &[], at, Some(secret)).unwrap();
    let mut interview = Interview::new();
    let first = first_of(&introduction);
    let Told::Ask(question) = tell(&mut interview, &first, at, Some(secret)) else {
        panic!("nothing is asked");
    };
    let Heard::Say(proof) = hear(&mut introduction, &question) else {
        panic!("nothing is proven");
    };
    let Told::Known(said) = tell(&mut interview, &proof, at, Some(secret)) else {
        panic!("it is not believed");
    };
    let answer = said.answer(&WELCOME, &[], Some(secret));
    assert_eq!(hear(&mut introduction, &answer), Heard::Answer(WELCOME, Vec::new()));
    [first, question.to_vec(), proof.to_vec(), answer]
}

#[test]
fn what_was_said_before_is_no_use() {
    let secret = Secret::new(KEY).unwrap();
    let [first, question, proof, answer] = honest(&secret);
    let at = place("10.0.0.1:80");
    // Towards the acceptor.
    let mut interview = Interview::new();
    let Told::Ask(other) = tell(&mut interview, &first, at, Some(&secret)) else {
        panic!("nothing is asked");
    };
    assert_ne!(other.to_vec(), question);
    assert_eq!(
        tell(&mut interview, &proof, at, Some(&secret)),
        Told::Stranger(Stranger::WrongSecret)
    );
    // Towards the dialer, whose hello is another one each time.
    let mut introduction = Introduction::begin(hello(7), &[], at, Some(&secret)).unwrap();
    assert_ne!(first_of(&introduction), first);
    assert!(matches!(hear(&mut introduction, &question), Heard::Say(other) if other.to_vec() != proof));
    assert_eq!(hear(&mut introduction, &answer), Heard::Unproven);
}

/// Somebody without the secret has the dialer answer its own endpoint's question, or hands it over to another.
#[test]
fn a_question_cannot_be_handed_on() {
    let secret = Secret::new(KEY).unwrap();
    let (here, there) = (place("10.0.0.1:80"), place("10.0.0.2:80"));
    // It was dialed at `there`, and asks `here` to ask.
    let mut introduction = Introduction::begin(hello(7), &[], there, Some(&secret)).unwrap();
    let mut interview = Interview::new();
    let first = first_of(&introduction);
    let Told::Ask(question) = tell(&mut interview, &first, here, Some(&secret)) else {
        panic!("nothing is asked");
    };
    let Heard::Say(proof) = hear(&mut introduction, &question) else {
        panic!("nothing is proven");
    };
    assert_eq!(
        tell(&mut interview, &proof, here, Some(&secret)),
        Told::Stranger(Stranger::WrongSecret)
    );
}

/// Nor is a dialer's proof good as the acceptor's.
#[test]
fn a_proof_cannot_be_sent_back() {
    let secret = Secret::new(KEY).unwrap();
    let mut introduction = Introduction::begin(hello(7), &[], place("10.0.0.1:80"), Some(&secret)).unwrap();
    let question = [&b"lfrs-ask"[..], &[3; secret::NONCE]].concat();
    let Heard::Say(proof) = hear(&mut introduction, &question) else {
        panic!("nothing is proven");
    };
    let answer = [&WELCOME.encode()[..], &proof].concat();
    assert_eq!(hear(&mut introduction, &answer), Heard::Unproven);
}

/// Nothing is proven twice, and nothing at all by whoever has no secret.
#[test]
fn one_question_is_answered() {
    let secret = Secret::new(KEY).unwrap();
    let question = [&b"lfrs-ask"[..], &[3; secret::NONCE]].concat();
    let at = place("10.0.0.1:80");
    let mut introduction = Introduction::begin(hello(7), &[], at, Some(&secret)).unwrap();
    assert!(matches!(hear(&mut introduction, &question), Heard::Say(_)));
    assert_eq!(hear(&mut introduction, &question), Heard::Nonsense);
    let mut introduction = Introduction::begin(hello(7), &[], at, None).unwrap();
    assert_eq!(hear(&mut introduction, &question), Heard::Nonsense);
}

/// An answer that is changed on the way is none.
#[test]
fn answers_are_proven_with_all_they_say() {
    let secret = Secret::new(KEY).unwrap();
    let at = place("10.0.0.1:80");
    for changed in [None, Some(8), Some(20), Some(30)] {
        let mut introduction = Introduction::begin(hello(7), &[], at, Some(&secret)).unwrap();
        let mut interview = Interview::new();
        let first = first_of(&introduction);
        let Told::Ask(question) = tell(&mut interview, &first, at, Some(&secret)) else {
            panic!("nothing is asked");
        };
        let Heard::Say(proof) = hear(&mut introduction, &question) else {
            panic!("nothing is proven");
        };
        let Told::Known(said) = tell(&mut interview, &proof, at, Some(&secret)) else {
            panic!("it is not believed");
        };
        let mut answer = said.answer(&WELCOME, &[], Some(&secret));
        if let Some(at) = changed {
            answer[at] ^= 2;
        }
        let expected = changed.map_or(Heard::Answer(WELCOME, Vec::new()), |_| Heard::Unproven);
        assert_eq!(hear(&mut introduction, &answer), expected, "{changed:?}");
    }
}

/// What programs say with a call arrives whole, with a secret and without, and a secret stands for it too.
#[test]
fn what_programs_say_is_proven_with_the_rest() {
    let (secret, at) = (Secret::new(KEY).unwrap(), place("10.0.0.1:80"));
    let call = || Hello {
        context: handshake::CALL,
        ..hello(7)
    };
    let rejected = Answer {
        verdict: Verdict::Rejected,
        instance: 9,
    };
    for secret in [None, Some(&secret)] {
        for verdict in [WELCOME, rejected] {
            let mut introduction = Introduction::begin(call(), b"asked", at, secret).unwrap();
            let mut interview = Interview::new();
            let mut told = tell(&mut interview, &first_of(&introduction), at, secret);
            if let Told::Ask(question) = told {
                let Heard::Say(proof) = hear(&mut introduction, &question) else {
                    panic!("nothing is proven");
                };
                told = tell(&mut interview, &proof, at, secret);
            }
            let Told::Known(said) = told else { panic!("{told:?}") };
            assert_eq!(said.data, b"asked");
            let answer = said.answer(&verdict, b"told", secret);
            assert_eq!(
                hear(&mut introduction, &answer),
                Heard::Answer(verdict, b"told".to_vec())
            );
        }
    }
    let mut introduction = Introduction::begin(call(), b"asked", at, Some(&secret)).unwrap();
    let mut interview = Interview::new();
    let mut changed = first_of(&introduction);
    changed[Hello::SIZE + 2] ^= 1;
    let Told::Ask(question) = tell(&mut interview, &changed, at, Some(&secret)) else {
        panic!("nothing is asked");
    };
    let Heard::Say(proof) = hear(&mut introduction, &question) else {
        panic!("nothing is proven");
    };
    let told = tell(&mut interview, &proof, at, Some(&secret));
    assert_eq!(told, Told::Stranger(Stranger::WrongSecret));
}
