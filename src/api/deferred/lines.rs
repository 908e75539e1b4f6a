//! The work that waits, in a line for each counter: by threshold, then in the order of submission.
//!
//! Says what is due; the caller starts it. Called by `deferred`, under its lock.

use super::due::Due;
use super::work::Work;
use crate::api::cntr::Cntr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A place in a counter's line: the threshold, then the order of submission.
pub(super) type Turn = (u64, u64);

struct Line {
    cntr: Arc<Cntr>,
    waiting: BTreeMap<Turn, Work>,
    /// Its first work was refused with -FI_EAGAIN: what is behind it waits.
    stuck: bool,
}

impl Line {
    /// Has the counter set `due` at the least threshold of its line, or sets it if that was reached before the counter
    /// knew.
    fn announce(&self, due: &Arc<Due>) {
        let first = self.waiting.first_key_value();
        let least = first.map(|((threshold, _), _)| *threshold);
        self.cntr.await_total(least, due);
        if least.is_some_and(|least| self.cntr.total() >= least) {
            due.set();
        }
    }
}

#[derive(Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    submitted: u64,
    due: Arc<Due>,
}

impl Lines {
    pub(super) fn new(due: &Arc<Due>) -> Lines {
        Lines {
            due: due.clone(),
            ..Lines::default()
        }
    }

    fn of(&self, cntr: &Arc<Cntr>) -> Option<usize> {
        self.lines.iter().position(|line| Arc::ptr_eq(&line.cntr, cntr))
    }

    /// Whether no other work must start before this.
    pub(super) fn is_first(&self, work: &Work) -> bool {
        let line = self.of(work.trigger.cntr()).and_then(|at| self.lines.get(at));
        let first = line.and_then(|line| line.waiting.first_key_value());
        first.is_none_or(|((threshold, _), _)| *threshold > work.threshold)
    }

    /// Adds work behind all of its threshold.
    pub(super) fn add(&mut self, work: Work) {
        self.submitted += 1;
        let turn = (work.threshold, self.submitted);
        self.put(turn, work, false);
    }

    /// Work that was taken and is refused for now goes back to its turn.
    pub(super) fn put_back(&mut self, turn: Turn, work: Work) {
        self.put(turn, work, true);
    }

    fn put(&mut self, turn: Turn, work: Work, stuck: bool) {
        let cntr = work.trigger.cntr().clone();
        let at = self.of(&cntr).unwrap_or_else(|| {
            self.lines.push(Line {
                cntr,
                waiting: BTreeMap::new(),
                stuck: false,
            });
            self.lines.len() - 1
        });
        if let Some(line) = self.lines.get_mut(at) {
            line.waiting.insert(turn, work);
            line.stuck |= stuck;
            line.announce(&self.due);
        }
    }

    /// Takes the next work whose threshold is reached.
    pub(super) fn take_due(&mut self) -> Option<(Turn, Work)> {
        for at in 0..self.lines.len() {
            let Some(line) = self.lines.get_mut(at).filter(|line| !line.stuck) else {
                continue;
            };
            let total = line.cntr.total();
            let Some(first) = line.waiting.first_entry().filter(|first| first.key().0 <= total) else {
                continue;
            };
            let found = first.remove_entry();
            line.announce(&self.due);
            if line.waiting.is_empty() {
                self.lines.swap_remove(at);
            }
            return Some(found);
        }
        None
    }

    /// Lets refused work be tried again. Returns whether there is any.
    pub(super) fn unstick(&mut self) -> bool {
        let mut any = false;
        for line in &mut self.lines {
            any |= core::mem::take(&mut line.stuck);
        }
        any
    }

    /// Takes out all work that `meant` says.
    pub(super) fn remove(&mut self, mut meant: impl FnMut(&Work) -> bool) -> Vec<Work> {
        let mut removed = Vec::new();
        for line in &mut self.lines {
            let turns: Vec<Turn> = line
                .waiting
                .iter()
                .filter(|(_, work)| meant(work))
                .map(|(turn, _)| *turn)
                .collect();
            removed.extend(turns.iter().filter_map(|turn| line.waiting.remove(turn)));
            line.announce(&self.due);
        }
        self.lines.retain(|line| !line.waiting.is_empty());
        removed
    }
}
