//! Matching held against two plain lists that are searched from the front, and how many entries it looks at.

use super::list::looks;
use super::*;

impl Receive for u32 {
    fn context(&self) -> usize {
        *self as usize
    }
}

/// Receives that last until they are taken back, which here the first match does.
const LASTING: core::ops::Range<u32> = 40..64;

/// The definition.
#[derive(Default)]
struct Model {
    posted: Vec<(Want, u32)>,
    unexpected: Vec<(Source, u64, u32)>,
}

impl Model {
    fn arrive(&mut self, source: Source, tag: u64, name: u32) -> Option<u32> {
        match self.posted.iter().position(|(want, _)| want.fits(source, tag)) {
            Some(place) => Some(self.posted.remove(place).1),
            None => {
                self.unexpected.push((source, tag, name));
                None
            }
        }
    }
    fn peek(&self, want: Want) -> Option<usize> {
        self.unexpected
            .iter()
            .position(|(source, tag, _)| want.fits(*source, *tag))
    }
    fn receive(&mut self, want: Want, name: u32) -> Option<u32> {
        match self.peek(want) {
            Some(place) => Some(self.unexpected.remove(place).2),
            None => {
                self.posted.push((want, name));
                None
            }
        }
    }
    fn cancel(&mut self, context: u32) -> Option<u32> {
        let place = self.posted.iter().position(|(_, name)| *name == context)?;
        Some(self.posted.remove(place).1)
    }
}

type Numbers = Matcher<u32, u32>;

fn arrive(matcher: &mut Numbers, source: Source, tag: u64, name: u32) -> Option<u32> {
    match matcher.take_posted(source, tag) {
        Taken::Removed(receive) => Some(receive),
        Taken::Lasting(id) => {
            assert_eq!(matcher.take_posted(source, tag), Taken::Lasting(id));
            matcher.unpost(id)
        }
        Taken::Nothing => {
            matcher.add_unexpected(source, tag, name);
            None
        }
    }
}

fn receive(matcher: &mut Numbers, want: Want, name: u32) -> Option<u32> {
    match matcher.find_unexpected(&want) {
        Some(message) => matcher.take_unexpected(message),
        None => {
            match LASTING.contains(&name) {
                true => _ = matcher.post_lasting(want, name),
                false => matcher.post(want, || name),
            }
            None
        }
    }
}

fn peek(matcher: &mut Numbers, want: Want) -> Option<u32> {
    let found = matcher.find_unexpected(&want)?;
    matcher.unexpected_mut(found).copied()
}

fn cancel(matcher: &mut Numbers, context: u32) -> Option<u32> {
    let found = matcher.find_context(context as usize, |_| true)?;
    matcher.unpost(found)
}

/// A message that no receive wants makes all of them be found by hash.
fn sort(matcher: &mut Numbers) {
    assert_eq!(matcher.take_posted(99, u64::MAX), Taken::Nothing);
}

fn want(source: Option<Source>, tag: u64, ignore: u64) -> Want {
    Want { source, tag, ignore }
}

const ANY: Want = Want {
    source: None,
    tag: 0,
    ignore: u64::MAX,
};

/// Source, tag, and which mask.
type Ask = (Source, u64, usize);

/// More masks than there are indices.
const MASKS: [u64; 12] = [0, 0, 0, 1 << 63, 1 << 63, 1, 2, 3, 0b1100, 0b1111, 0b10000, u64::MAX];

/// Blocks of steps, of which some are mostly arrivals, so that many are held, and some mostly receives.
fn blocks() -> impl proptest::strategy::Strategy<Value = Vec<(u8, Vec<(u8, Ask)>)>> {
    let steps = proptest::collection::vec((0u8..16, (0u32..3, 0u64..40, 0..MASKS.len())), 0..90);
    proptest::collection::vec((0u8..16, steps), 0..14)
}

fn step(matcher: &mut Numbers, model: &mut Model, claims: &mut Vec<(Id, u32)>, act: u8, ask: Ask, name: u32) {
    let (source, tag, mask) = ask;
    let want = want((source > 0).then_some(source), tag, MASKS[mask]);
    match act {
        0 => assert_eq!(cancel(matcher, name % 64), model.cancel(name % 64)),
        1 | 2 => assert_eq!(
            peek(matcher, want),
            model.peek(want).map(|place| model.unexpected[place].2)
        ),
        3 => {
            let found = matcher.find_unexpected(&want);
            let place = model.peek(want);
            assert_eq!(found.is_some(), place.is_some());
            if let (Some(found), Some(place)) = (found, place) {
                assert!(matcher.claim(found));
                claims.push((found, model.unexpected.remove(place).2));
            }
        }
        4 if !claims.is_empty() => {
            let (message, is) = claims.remove(name as usize % claims.len());
            assert_eq!(matcher.take_unexpected(message), Some(is));
        }
        _ => {
            let context = name % 64;
            assert_eq!(receive(matcher, want, context), model.receive(want, context));
        }
    }
}

proptest::proptest! {
    #[test]
    fn agrees_with_two_plain_lists(blocks in blocks()) {
        let (mut matcher, mut model, mut claims) = (Matcher::default(), Model::default(), Vec::new());
        let steps = blocks.into_iter().flat_map(|(bias, steps)| steps.into_iter().map(move |step| (bias, step)));
        for (name, (bias, (roll, ask))) in (0u32..).zip(steps) {
            if roll < bias {
                let (source, tag, _) = ask;
                assert_eq!(arrive(&mut matcher, source, tag, name), model.arrive(source, tag, name));
            } else {
                step(&mut matcher, &mut model, &mut claims, roll - bias, ask, name);
            }
            assert_eq!(matcher.posted_len(), model.posted.len());
            assert_eq!(matcher.unexpected_len(), model.unexpected.len() + claims.len());
        }
        // What is left comes out in order, whatever it is found by.
        while let Some(next) = model.receive(ANY, 0) {
            assert_eq!(receive(&mut matcher, ANY, 0), Some(next));
        }
    }
}

// ---- how many entries are looked at ----

const SIZES: [u32; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
/// What an operation may look at on average, whatever there is: two or three in a chain, and two for each index, of
/// which the tests have up to four, when it is made.
const FLAT: u64 = 12;

/// Peers that send, so that directed receives have something to tell apart.
const PEERS: u32 = 7;

/// Which receives of the messages `0..many` a program posts.
#[derive(Clone, Copy, Debug)]
struct Style {
    directed: bool,
    ignore: u64,
}

const STYLES: [Style; 6] = [
    Style {
        directed: true,
        ignore: 0,
    },
    Style {
        directed: false,
        ignore: 0,
    },
    Style {
        directed: true,
        ignore: 1 << 63,
    },
    Style {
        directed: false,
        ignore: 1 << 63,
    },
    // Any tag of one kind: many messages fit.
    Style {
        directed: true,
        ignore: 0xffff,
    },
    Style {
        directed: false,
        ignore: 0xffff,
    },
];

fn source(name: u32) -> Source {
    name % PEERS
}

fn tag(name: u32) -> u64 {
    u64::from(name) << 8
}

impl Style {
    fn want(self, name: u32) -> Want {
        want(self.directed.then_some(source(name)), tag(name), self.ignore)
    }
}

/// Does `act` with each of `0..many`, last ones first, and says how many entries it looked at for each.
#[track_caller]
fn each(what: &str, many: u32, mut act: impl FnMut(u32)) {
    looks::take();
    (0..many).rev().for_each(&mut act);
    let looked = looks::take();
    println!("{what}: {many}: {:.2} looks", looked as f64 / f64::from(many));
    // The first few are searched one by one.
    let most = FLAT.max(u64::from(many.min(2 * index::FEW as u32)));
    assert!(
        looked <= most * u64::from(many),
        "{what}: {many} entries: {looked} looks"
    );
}

fn holding(many: u32) -> Numbers {
    let mut matcher = Matcher::default();
    for name in 0..many {
        matcher.add_unexpected(source(name), tag(name), name);
    }
    matcher
}

#[test]
fn receives_of_held_messages_look_at_few() {
    for (style, many) in STYLES.into_iter().flat_map(|style| SIZES.map(|many| (style, many))) {
        let mut matcher = holding(many);
        each(&format!("held, {style:?}"), many, |name| {
            assert!(receive(&mut matcher, style.want(name), name).is_some());
        });
        assert_eq!((matcher.unexpected_len(), matcher.posted_len()), (0, 0));
    }
}

#[test]
fn looking_at_held_messages_looks_at_few() {
    for (style, many) in STYLES.into_iter().flat_map(|style| SIZES.map(|many| (style, many))) {
        let mut matcher = holding(many);
        each(&format!("peek, {style:?}"), many, |name| {
            assert!(matcher.find_unexpected(&style.want(name)).is_some());
        });
        each(&format!("peek at nothing, {style:?}"), many, |name| {
            assert!(
                matcher
                    .find_unexpected(&Want {
                        tag: 1 << 40,
                        ..style.want(name)
                    })
                    .is_none()
            );
        });
        each(&format!("claim, {style:?}"), many, |name| {
            let found = matcher.find_unexpected(&style.want(name)).unwrap();
            assert!(matcher.claim(found));
            assert!(matcher.take_unexpected(found).is_some());
        });
    }
}

#[test]
fn arrivals_for_posted_receives_look_at_few() {
    for (style, many) in STYLES.into_iter().flat_map(|style| SIZES.map(|many| (style, many))) {
        let mut matcher = Numbers::default();
        each(&format!("posting, {style:?}"), many, |name| {
            assert_eq!(receive(&mut matcher, style.want(many - 1 - name), name), None);
        });
        each(&format!("posted, {style:?}"), many, |name| {
            assert!(arrive(&mut matcher, source(name), tag(name), name).is_some());
        });
    }
}

/// Whatever bits the receives ignore, and without a group for any of them.
#[test]
fn messages_in_the_order_of_posting_look_at_one_each() {
    let mut matcher = Numbers::default();
    for name in 100..1_100 {
        matcher.post(want(None, tag(name), u64::from(name % 256)), || name);
    }
    looks::take();
    for name in 100..1_100 {
        assert_eq!(arrive(&mut matcher, source(name), tag(name), name), Some(name));
    }
    assert_eq!((looks::take(), matcher.posted.groups()), (1_000, 0));
}

/// All styles at once, the same messages: each arrival asks every group, each receive its own index.
#[test]
fn patterns_together_look_at_few() {
    let style = |name: u32| STYLES[name as usize % 4];
    for many in SIZES {
        let mut matcher = holding(many);
        each("held, mixed", many, |name| {
            assert_eq!(receive(&mut matcher, style(name).want(name), name), Some(name));
        });
        for name in 0..many {
            matcher.post(style(name).want(name), || name);
        }
        each("posted, mixed", many, |name| {
            assert_eq!(arrive(&mut matcher, source(name), tag(name), name), Some(name));
        });
    }
}

#[test]
fn cancelling_looks_at_few() {
    for many in SIZES {
        let mut matcher = Numbers::default();
        for name in 0..many {
            matcher.post(STYLES[3].want(name), || name);
        }
        each("cancel", many, |name| {
            assert_eq!(cancel(&mut matcher, name), Some(name))
        });
        each("cancel what is not there", many, |name| {
            assert_eq!(cancel(&mut matcher, name), None)
        });
        // Receives that come while others are cancelled.
        for name in 0..many {
            matcher.post(STYLES[3].want(name), || name);
        }
        each("cancel and post", many, |name| {
            assert_eq!(cancel(&mut matcher, name), Some(name));
            matcher.post(STYLES[3].want(name), || many + name);
        });
        // All with one context: the oldest first.
        let mut same = Numbers::default();
        for name in 0..many {
            same.post(STYLES[3].want(name), || 5);
        }
        each("cancel of one context", many, |_| {
            assert!(cancel(&mut same, 5).is_some())
        });
    }
}

/// More patterns than are indexed take turns, and cost no more than searching for each of them would.
#[test]
fn many_patterns_do_not_drive_each_other_out() {
    let many = 1_000;
    let mut matcher = holding(many);
    looks::take();
    let rounds = 100;
    for _ in 0..rounds {
        for bit in 0..16 {
            let missing = want(None, 1 << 40, 1 << (48 + bit));
            assert!(matcher.find_unexpected(&missing).is_none());
        }
    }
    let looked = looks::take();
    assert!(looked < rounds * 16 * u64::from(many), "{looked}");
}

// ---- what is kept ----

#[test]
fn memory_follows_use() {
    let mut matcher = Numbers::default();
    for tag in 0..100_000 {
        let want = want(Some(1), tag, 0);
        matcher.post(want, || 0);
        if tag % 2 == 0 {
            sort(&mut matcher);
        }
        assert_eq!(matcher.take_posted(1, tag), Taken::Removed(0));
        let message = matcher.add_unexpected(1, tag, 0u32);
        assert_eq!(matcher.find_unexpected(&want), Some(message));
        matcher.take_unexpected(message);
    }
    assert!(matcher.posted.width() <= 65);
    assert_eq!(matcher.unexpected.indices(), 0);
}

#[test]
fn indices_go_when_nobody_asks() {
    let mut matcher = holding(1_000);
    for bit in 0..20 {
        let missing = want(None, 1 << 40, 1 << bit);
        (0..20).for_each(|_| assert!(matcher.find_unexpected(&missing).is_none()));
    }
    assert!(matcher.unexpected.indices() > 4 && matcher.unexpected.indices() <= 8);
    for name in 0..3_000 {
        matcher.add_unexpected(0, 1 << 50, name);
        let newest = matcher.find_unexpected(&want(None, 1 << 50, 0)).unwrap();
        matcher.take_unexpected(newest);
    }
    assert_eq!(matcher.unexpected.indices(), 1);
}

#[test]
fn groups_follow_use() {
    let mut matcher = Numbers::default();
    for _ in 0..3 {
        for name in 0..1_000u32 {
            matcher.post(want(None, 0, u64::from(name)), || name);
        }
        sort(&mut matcher);
        for name in 0..1_000 {
            assert_eq!(arrive(&mut matcher, 0, 0, name), Some(name));
        }
    }
    // Those that are too many go with the next receive.
    matcher.post(want(Some(0), 0, 0), || 0);
    sort(&mut matcher);
    assert_eq!(arrive(&mut matcher, 0, 0, 0), Some(0));
    assert!(matcher.posted.groups() <= 8);
}

/// Many at once make many chains, which keep the order and do not outlive their entries.
#[test]
fn chains_grow_and_shrink() {
    let want = |tag: u32| want(Some(tag % 3), u64::from(tag / 2), 0);
    let mut matcher = Numbers::default();
    const MANY: u32 = 10_000;
    for name in 0..MANY {
        matcher.post(want(name % 600), || name);
        matcher.add_unexpected(name % 3, u64::from(name) % 300, name);
    }
    sort(&mut matcher);
    let mut last = vec![None; 600];
    for name in 0..MANY {
        let Want { source, tag, .. } = want(name % 600);
        let found = arrive(&mut matcher, source.unwrap(), tag, name).unwrap();
        let place = &mut last[(name % 600) as usize];
        assert!(*place < Some(found), "oldest first");
        *place = Some(found);
    }
    assert_eq!(matcher.posted.width(), 0);
    for name in 0..MANY {
        let found = matcher.find_unexpected(&ANY).and_then(|id| matcher.take_unexpected(id));
        assert_eq!(found, Some(name));
    }
    assert_eq!(matcher.unexpected_len(), 0);
}

#[test]
fn a_claimed_message_is_out_of_matching_until_released() {
    let mut matcher = Numbers::default();
    let (first, second) = (matcher.add_unexpected(1, 5, 10), matcher.add_unexpected(1, 5, 11));
    assert!(matcher.claim(first));
    assert!(!matcher.claim(first));
    assert_eq!(matcher.find_unexpected(&ANY), Some(second));
    assert_eq!(matcher.find_unexpected(&want(Some(1), 5, 0)), Some(second));
    assert_eq!(matcher.take_unexpected(first), Some(10));
}
