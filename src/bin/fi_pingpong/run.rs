//! The ping-pong itself: each size in turn, both programs counting what they post and what has
//! completed; checks of the data.
//!
//! Knows no fabric calls beyond those of `Link`. Called by `main`.

use crate::abi::types::{FI_EAGAIN, FI_EP_DGRAM};
use crate::control::Role;
use crate::ffi::{Endpoint, Queue};
use crate::link::Link;
use crate::options::Options;
use crate::progress::Progress;
use crate::report;
use crate::say::{self, Fail, debug};
use core::ffi::c_int;
use std::io::Write;
use std::time::Instant;

const LAST: &[u8] = b"fin\0";
/// How many empty reads of a queue before the control connection is asked whether the other program still lives.
const PATIENCE: u32 = 1 << 20;

/// Runs all sizes, and says goodbye.
pub fn run(options: &Options, link: &mut Link) -> Result<(), Fail> {
    debug(format_args!("Running pingpong test with fi_info:\n{}", link.info_text));
    if link.facts.ep_type == FI_EP_DGRAM {
        // The last message must find a receive even if its sender is one ahead.
        post(link, "receive", |endpoint| endpoint.recv(1), Direction::Rx)?;
    }
    let mut patterns = Patterns::default();
    let mut header = Some(report::header());
    for size in options.sizes.list(link.largest) {
        let result = one_size(options, link, &mut patterns, size)?;
        if result.sent > 0 {
            print(&(header.take().unwrap_or_default() + &report::row(&result)))?;
        }
    }
    finish(link)
}

fn one_size(options: &Options, link: &mut Link, patterns: &mut Patterns, size: usize) -> Result<report::Result, Fail> {
    link.control.sync()?;
    let client = link.control.role() == Role::Client;
    let mut acked = 0;
    debug(format_args!("Starting test chrono"));
    let mut progress = Progress::new(size, options.iterations.into());
    let start = Instant::now();
    for _ in 0..options.iterations {
        if client {
            ping(options, link, patterns, size)?;
        }
        pong(options, link, patterns, size)?;
        acked += 1;
        if !client {
            ping(options, link, patterns, size)?;
        }
        progress.done(acked);
    }
    let microseconds = start.elapsed().as_micros() as u64;
    drop(progress);
    debug(format_args!("Stopped test chrono"));
    Ok(report::Result {
        size,
        sent: options.iterations.into(),
        acked: link.control.share_count(acked)?,
        microseconds,
    })
}

/// Sends one message, and waits until its buffer is ours again.
fn ping(options: &Options, link: &mut Link, patterns: &mut Patterns, size: usize) -> Result<(), Fail> {
    if options.verify {
        link.endpoint.buffers().fill(&patterns.next_sent(size));
    }
    if size < link.facts.inject_size {
        post(link, "inject", |endpoint| endpoint.inject(size), Direction::Tx)
    } else {
        post(link, "transmit", |endpoint| endpoint.send(size), Direction::Tx)?;
        wait(link, Direction::Tx)
    }
}

/// Waits for one message, and posts the receive for the next.
fn pong(options: &Options, link: &mut Link, patterns: &mut Patterns, size: usize) -> Result<(), Fail> {
    wait_received(link)?;
    if options.verify {
        patterns.check(&link.endpoint.buffers().received(size), size)?;
    }
    // The first one took turn 0, the spare one of datagrams turn 1.
    let turn = link.posted.wrapping_add(1);
    post(link, "receive", |endpoint| endpoint.recv(turn), Direction::Rx)?;
    link.posted += 1;
    Ok(())
}

fn finish(link: &mut Link) -> Result<(), Fail> {
    debug(format_args!("Terminating test"));
    link.endpoint.buffers().fill(LAST);
    post(
        link,
        "transmit",
        |endpoint| endpoint.send_last(LAST.len()),
        Direction::Tx,
    )?;
    wait(link, Direction::Tx)?;
    wait_received(link)?;
    debug(format_args!("Test terminated"));
    Ok(())
}

#[derive(Clone, Copy)]
enum Direction {
    Tx,
    Rx,
}

/// Repeats the call until the library takes the operation; reads the queue in between, so that it makes progress.
fn post(link: &mut Link, name: &str, call: impl Fn(&Endpoint) -> c_int, direction: Direction) -> Result<(), Fail> {
    let mut idle = 0;
    loop {
        match call(&link.endpoint) {
            0 => return Ok(()),
            again if again == -FI_EAGAIN => {}
            error => return Err(say::failed(name, error)),
        }
        match direction {
            Direction::Rx => link.received += u64::from(link.rx.poll()?),
            // No send is in flight when one is posted, so there is no completion to count.
            Direction::Tx => {
                link.tx.poll()?;
            }
        }
        be_patient(link, &mut idle)?;
    }
}

/// Waits for the completion of the one operation that is in flight in this direction.
fn wait(link: &mut Link, direction: Direction) -> Result<(), Fail> {
    let mut idle = 0;
    let queue = |link: &Link| -> Result<bool, Fail> {
        let queue: &Queue = match direction {
            Direction::Tx => &link.tx,
            Direction::Rx => &link.rx,
        };
        queue.poll()
    };
    while !queue(link)? {
        be_patient(link, &mut idle)?;
    }
    Ok(())
}

/// Waits until as many receives have completed as were posted, but for the spare one of datagrams.
fn wait_received(link: &mut Link) -> Result<(), Fail> {
    while link.received < link.posted {
        wait(link, Direction::Rx)?;
        link.received += 1;
    }
    Ok(())
}

#[inline]
fn be_patient(link: &mut Link, idle: &mut u32) -> Result<(), Fail> {
    *idle += 1;
    if *idle < PATIENCE {
        return Ok(());
    }
    *idle = 0;
    link.control.check_peer()
}

fn print(text: &str) -> Result<(), Fail> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| std::io::stdout().flush())
        .map_err(|error| say::failed_io("write", &error))
}

/// The data of -c: every message begins seven letters further in the alphabet than the one before it.
#[derive(Default)]
struct Patterns {
    sent: usize,
    checked: usize,
}

const ALPHABET: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const STEP: usize = 7;

impl Patterns {
    fn next_sent(&mut self, size: usize) -> Vec<u8> {
        let message = pattern(self.sent).take(size).collect();
        self.sent = self.sent.wrapping_add(1);
        message
    }

    fn check(&mut self, message: &[u8], size: usize) -> Result<(), Fail> {
        let wrong = message
            .iter()
            .zip(pattern(self.checked))
            .position(|(got, wanted)| *got != wanted);
        self.checked = self.checked.wrapping_add(1);
        match wrong {
            None => Ok(()),
            Some(byte) => {
                print(&format!(
                    "Error at iteration={} size={size} byte={byte}\n",
                    self.checked
                ))?;
                Err(Fail(1))
            }
        }
    }
}

fn pattern(number: usize) -> impl Iterator<Item = u8> {
    // 62 numbers on, the patterns begin again.
    let first = number % ALPHABET.len() * STEP % ALPHABET.len();
    ALPHABET.iter().copied().cycle().skip(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_move_by_seven_and_wrap() {
        let mut patterns = Patterns::default();
        assert_eq!(patterns.next_sent(3), b"012");
        assert_eq!(patterns.next_sent(3), b"789");
        patterns.sent = 8; // 56 letters on
        assert_eq!(patterns.next_sent(8), b"UVWXYZ01");
        patterns.sent = 62;
        assert_eq!(patterns.next_sent(2), b"01");
        assert_eq!(patterns.next_sent(0), b"");
    }

    #[test]
    fn checks_find_the_first_wrong_byte() {
        let mut patterns = Patterns::default();
        assert_eq!(patterns.check(b"012", 3), Ok(()));
        assert_eq!(patterns.check(b"", 0), Ok(()));
        assert_eq!(patterns.check(b"eff", 3), Err(Fail(1)));
        assert_eq!(patterns.check(b"lmn", 3), Ok(()));
    }
}
