//! One member and all others: broadcast, scatter, gather, reduce.
//!
//! Members are counted from the root on, in a binomial tree: the parent of member `v` is `v` without its lowest set
//! bit, and the subtree of `v` has as many members, `v`, `v + 1` ..., as that bit says. Long pieces go to or from the
//! root directly, since they pass through it anyway.

use super::{Blocks, Buffer, Plan, Rank, Span, Team};

/// A member's place in the tree.
#[derive(Clone, Copy)]
struct Branch {
    team: Team,
    root: Rank,
    /// Counted from the root.
    place: usize,
}

impl Branch {
    fn new(team: Team, root: Rank) -> Branch {
        Branch {
            team,
            root,
            place: (team.rank + team.size - root) % team.size,
        }
    }

    fn rank(&self, place: usize) -> Rank {
        (self.root + place) % self.team.size
    }

    fn is_root(&self) -> bool {
        self.place == 0
    }

    /// How many members the subtree of `place` has.
    fn covers(&self, place: usize) -> usize {
        let n = self.team.size;
        if place == 0 {
            n
        } else {
            (place & place.wrapping_neg()).min(n - place)
        }
    }

    fn parent(&self) -> Rank {
        self.rank(self.place & self.place.wrapping_sub(1))
    }

    /// The distances to the children, nearest first.
    fn children(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let covers = self.covers(self.place);
        let reach = self.team.doublings().take_while(move |step| *step < covers);
        reach.collect::<Vec<_>>().into_iter()
    }
}

impl Plan {
    pub(super) fn broadcast_short(&mut self, team: Team, root: Rank, data: Span) {
        let branch = Branch::new(team, root);
        if !branch.is_root() {
            self.recv(branch.parent(), data);
            self.wait();
        }
        // The farthest child has the most below it.
        for step in branch.children().rev() {
            self.send(branch.rank(branch.place + step), data);
        }
        self.wait();
    }

    /// Each member gets a part of the data, then they pass the parts around.
    pub(super) fn broadcast_long(&mut self, team: Team, root: Rank, data: Span) {
        let branch = Branch::new(team, root);
        let parts = Blocks::new(data, 1, team.size);
        let below = |place: usize| parts.run(place, branch.covers(place));
        if !branch.is_root() {
            self.recv(branch.parent(), below(branch.place));
            self.wait();
        }
        for step in branch.children().rev() {
            self.send(branch.rank(branch.place + step), below(branch.place + step));
        }
        self.wait();
        self.ring(team, parts, branch.place);
    }

    pub(super) fn scatter_long(&mut self, team: Team, root: Rank, input: Span, result: Span, len: usize) {
        if team.rank == root {
            for step in 1..team.size {
                let to = team.after(step);
                self.send(to, input.part(to * len, len));
            }
            self.copy(input.part(root * len, len), result);
        } else {
            self.recv(root, result);
        }
        self.wait();
    }

    pub(super) fn scatter_short(&mut self, team: Team, root: Rank, input: Span, result: Span, len: usize) {
        let branch = Branch::new(team, root);
        let covers = branch.covers(branch.place);
        let all = match (branch.is_root(), covers) {
            (true, _) => self.root_first(team, root, input, len),
            (false, 1) => result,
            (false, _) => self.scratch(covers * len),
        };
        if !branch.is_root() {
            self.recv(branch.parent(), all);
            self.wait();
        }
        for step in branch.children().rev() {
            let place = branch.place + step;
            self.send(branch.rank(place), all.part(step * len, branch.covers(place) * len));
        }
        if all != result {
            self.copy(all.part(0, len), result);
        }
        self.wait();
    }

    /// The pieces of all members, the root's first.
    fn root_first(&mut self, team: Team, root: Rank, input: Span, len: usize) -> Span {
        if root == 0 {
            return input;
        }
        let turned = self.scratch(team.size * len);
        let (first, second) = ((team.size - root) * len, root * len);
        self.copy(input.part(second, first), turned.part(0, first));
        self.copy(input.part(0, second), turned.part(first, second));
        turned
    }

    pub(super) fn gather_long(&mut self, team: Team, root: Rank, input: Span, result: Span, len: usize) {
        if team.rank == root {
            for step in 1..team.size {
                let from = team.after(step);
                self.recv(from, result.part(from * len, len));
            }
            self.copy(input, result.part(root * len, len));
        } else {
            self.send(root, input);
        }
        self.wait();
    }

    pub(super) fn gather_short(&mut self, team: Team, root: Rank, input: Span, result: Span, len: usize) {
        let branch = Branch::new(team, root);
        let covers = branch.covers(branch.place);
        let all = match (branch.is_root(), covers) {
            (true, _) if root == 0 => result,
            (false, 1) => input,
            _ => self.scratch(covers * len),
        };
        for step in branch.children() {
            let place = branch.place + step;
            self.recv(branch.rank(place), all.part(step * len, branch.covers(place) * len));
        }
        if all != input {
            self.copy(input, all.part(0, len));
        }
        self.wait();
        if !branch.is_root() {
            self.send(branch.parent(), all);
            self.wait();
        } else if all.buffer == Buffer::Scratch {
            let (first, second) = ((team.size - root) * len, root * len);
            self.copy(all.part(0, first), result.part(second, first));
            self.copy(all.part(first, second), result.part(0, second));
        }
    }

    pub(super) fn reduce_short(&mut self, team: Team, root: Rank, input: Span, result: Span) {
        let branch = Branch::new(team, root);
        let mut sum = input;
        if branch.is_root() || branch.children().next().is_some() {
            sum = if branch.is_root() {
                result
            } else {
                self.scratch(input.len)
            };
            self.copy(input, sum);
        }
        let mut others = None;
        for step in branch.children() {
            let part = *others.get_or_insert_with(|| self.scratch(input.len));
            self.recv(branch.rank(branch.place + step), part);
            self.wait();
            self.combine(part, sum);
        }
        if !branch.is_root() {
            self.send(branch.parent(), sum);
            self.wait();
        }
    }

    /// Each member reduces a part, and the root collects them.
    pub(super) fn reduce_long(&mut self, team: Team, root: Rank, input: Span, result: Span, element: usize) {
        let (parts, sums) = (
            Blocks::new(input, element, team.size),
            Blocks::new(result, element, team.size),
        );
        let sum = if team.rank == root {
            sums.get(root)
        } else {
            let len = parts.get(team.rank).len;
            self.scratch(len)
        };
        self.reduce_parts(team, |rank| parts.get(rank), sum);
        if team.rank == root {
            for step in 1..team.size {
                let from = team.after(step);
                self.recv(from, sums.get(from));
            }
        } else {
            self.send(root, sum);
        }
        self.wait();
    }
}
