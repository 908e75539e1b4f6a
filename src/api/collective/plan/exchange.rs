//! All members with each other: barrier, allgather, alltoall, and the reductions whose result all or each of them get.
//!
//! All members of an allreduce get the same bits, whatever rounding and NaNs make of the order: an element is combined
//! by one member alone and passed on, or by several in the same way, with the lower ranks' share on the left.

use super::{Blocks, Plan, Span, Team};

/// Rounds of an alltoall that are in flight at once.
const AT_ONCE: usize = 16;

impl Plan {
    /// When it ends, every member has heard of every other, directly or through others.
    pub(super) fn barrier(&mut self, team: Team) {
        let nothing = Span::new(super::Buffer::Scratch, 0);
        for step in team.doublings() {
            self.send(team.after(step), nothing);
            self.recv(team.before(step), nothing);
            self.wait();
        }
    }

    /// Passes parts around the circle until all have all. `own` is the part that this member begins with, which lies in
    /// its place, and those of the others follow in their order.
    pub(super) fn ring(&mut self, team: Team, parts: Blocks, own: usize) {
        let n = team.size;
        for step in 0..n - 1 {
            let (gone, coming) = ((own + n - step) % n, (own + n - step - 1) % n);
            self.recv(team.before(1), parts.get(coming));
            self.send(team.after(1), parts.get(gone));
            self.wait();
        }
    }

    pub(super) fn allgather_long(&mut self, team: Team, input: Span, result: Span, len: usize) {
        self.copy(input, result.part(team.rank * len, len));
        self.ring(team, Blocks::new(result, len, team.size), team.rank);
    }

    /// What a member has doubles each round: its own piece, then those of the members after it.
    pub(super) fn allgather_short(&mut self, team: Team, input: Span, result: Span, len: usize) {
        let n = team.size;
        let all = self.scratch(n * len);
        self.copy(input, all.part(0, len));
        for step in team.doublings() {
            let more = step.min(n - step);
            self.recv(team.after(step), all.part(step * len, more * len));
            self.send(team.before(step), all.part(0, more * len));
            self.wait();
        }
        let (first, second) = ((n - team.rank) * len, team.rank * len);
        self.copy(all.part(0, first), result.part(second, first));
        self.copy(all.part(first, second), result.part(0, second));
    }

    pub(super) fn alltoall(&mut self, team: Team, input: Span, result: Span, len: usize) {
        let piece = |whole: Span, rank: usize| whole.part(rank * len, len);
        self.copy(piece(input, team.rank), piece(result, team.rank));
        for step in 1..team.size {
            let (to, from) = (team.after(step), team.before(step));
            self.recv(from, piece(result, from));
            self.send(to, piece(input, to));
            if step % AT_ONCE == 0 {
                self.wait();
            }
        }
        self.wait();
    }

    /// `parts`: this member's share of what each member is to reduce; `sum`: where this one's goes, not read by others.
    pub(super) fn reduce_parts(&mut self, team: Team, parts: impl Fn(usize) -> Span, sum: Span) {
        let other = self.scratch(sum.len);
        self.copy(parts(team.rank), sum);
        for step in 1..team.size {
            self.recv(team.before(step), other);
            let to = team.after(step);
            self.send(to, parts(to));
            self.wait();
            self.combine(other, sum);
        }
    }

    pub(super) fn reduce_scatter(&mut self, team: Team, input: Span, result: Span, len: usize) {
        if input.len < team.long {
            let (sum, spare) = (self.scratch(input.len), self.scratch(input.len));
            self.allreduce_short(team, input, sum, spare);
            self.copy(sum.part(team.rank * len, len), result);
        } else {
            self.reduce_parts(team, |rank| input.part(rank * len, len), result);
        }
    }

    pub(super) fn allreduce_long(&mut self, team: Team, input: Span, result: Span, element: usize) {
        let (parts, sums) = (
            Blocks::new(input, element, team.size),
            Blocks::new(result, element, team.size),
        );
        self.reduce_parts(team, |rank| parts.get(rank), sums.get(team.rank));
        self.ring(team, sums, team.rank);
    }

    /// Two by two, then fours with fours, and so on; members beyond a power of two hand their share to a neighbour.
    pub(super) fn allreduce_short(&mut self, team: Team, input: Span, result: Span, spare: Span) {
        let power = 1 << team.size.ilog2();
        let beyond = team.size - power;
        let paired = team.rank < 2 * beyond;
        self.copy(input, result);
        let mut both = Both {
            sum: result,
            other: spare,
        };
        if paired && team.rank % 2 == 0 {
            self.send(team.rank + 1, result);
            self.wait();
            self.recv(team.rank + 1, result);
            self.wait();
            return;
        }
        if paired {
            self.merge(team.rank - 1, true, &mut both);
        }
        let place = if paired { team.rank / 2 } else { team.rank - beyond };
        let mut step = 1;
        while step < power {
            let partner = place ^ step;
            let rank = if partner < beyond {
                2 * partner + 1
            } else {
                partner + beyond
            };
            self.send(rank, both.sum);
            self.merge(rank, partner < place, &mut both);
            step *= 2;
        }
        if paired {
            self.send(team.rank - 1, both.sum);
        }
        if both.sum != result {
            self.copy(both.sum, result);
        }
        self.wait();
    }

    /// Receives a partner's sum and combines it with ours, on the left if it is of lower ranks.
    fn merge(&mut self, from: usize, on_the_left: bool, both: &mut Both) {
        self.recv(from, both.other);
        self.wait();
        if on_the_left {
            core::mem::swap(&mut both.sum, &mut both.other);
        }
        self.combine(both.other, both.sum);
    }
}

/// The sum so far, and the place for a partner's.
struct Both {
    sum: Span,
    other: Span,
}
