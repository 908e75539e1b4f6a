//! What one member of a group does for a collective operation: a list of sends, receives and local work.
//!
//! Pure: numbers in, steps out. Messages of one operation between two members match in the order they are listed, so
//! they carry no header; `Wait` ends a round, when everything begun in it is complete. Until then no later step touches
//! memory that is being sent or received. Each operation has one plan for short data, with few rounds, and one for long
//! data, which moves and combines as little as possible. Called by `run`, which carries the steps out.
//!
//! - `tree`: what runs along a binomial tree;
//! - `exchange`: what all members do with each other.

mod exchange;
#[cfg(test)]
mod tests;
mod tree;

/// A member's place in its group.
pub type Rank = usize;

/// From this many bytes on, moving the data costs more than a round of messages.
pub const LONG: usize = 32 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// The caller's source buffer.
    Input,
    /// The caller's result buffer; a broadcast reads it too.
    Result,
    /// Scratch memory of `Plan::scratch` bytes.
    Scratch,
}

/// A range of bytes in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub buffer: Buffer,
    pub at: usize,
    pub len: usize,
}

impl Span {
    pub fn new(buffer: Buffer, len: usize) -> Span {
        Span { buffer, at: 0, len }
    }

    /// The `len` bytes from byte `at` of this span on.
    fn part(self, at: usize, len: usize) -> Span {
        Span {
            at: self.at + at,
            len,
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Send {
        to: Rank,
        span: Span,
    },
    Recv {
        from: Rank,
        span: Span,
    },
    /// Both spans have one length.
    Copy {
        from: Span,
        into: Span,
    },
    /// `into = into op from`, in this order.
    Combine {
        from: Span,
        into: Span,
    },
    /// Waits until every send and receive so far is complete.
    Wait,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Barrier,
    /// `Result`, from the root to all.
    Broadcast {
        root: Rank,
    },
    Alltoall,
    Allreduce,
    Allgather,
    ReduceScatter,
    Reduce {
        root: Rank,
    },
    Scatter {
        root: Rank,
    },
    Gather {
        root: Rank,
    },
}

/// The member that plans, and the size of its group.
#[derive(Clone, Copy, Debug)]
pub struct Team {
    pub rank: Rank,
    /// At least 1.
    pub size: usize,
    /// As `LONG`.
    pub long: usize,
}

impl Team {
    pub fn new(rank: Rank, size: usize) -> Team {
        Team { rank, size, long: LONG }
    }

    /// The rank `places` after this one, in the circle.
    fn after(&self, places: usize) -> Rank {
        (self.rank + places) % self.size
    }

    fn before(&self, places: usize) -> Rank {
        (self.rank + self.size - places % self.size) % self.size
    }

    /// The distances 1, 2, 4 ... that are smaller than the group.
    fn doublings(&self) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        core::iter::successors(Some(1usize), |step| step.checked_mul(2)).take_while(move |step| *step < size)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub steps: Vec<Step>,
    pub scratch: usize,
}

impl Plan {
    /// `count` elements of `element` bytes: all of them where every member has the same data or there is one result of
    /// it, one member's share where each has its own. All members together have less than an address space.
    pub fn new(operation: Operation, team: Team, count: usize, element: usize) -> Plan {
        let mut plan = Plan::default();
        let (n, len) = (team.size, count * element);
        let (input, result) = lengths(operation, team, len);
        let (input, result) = (Span::new(Buffer::Input, input), Span::new(Buffer::Result, result));
        match operation {
            Operation::Barrier => plan.barrier(team),
            Operation::Broadcast { root } if len >= team.long && n > 2 => plan.broadcast_long(team, root, result),
            Operation::Broadcast { root } => plan.broadcast_short(team, root, result),
            Operation::Scatter { root } if len >= team.long => plan.scatter_long(team, root, input, result, len),
            Operation::Scatter { root } => plan.scatter_short(team, root, input, result, len),
            Operation::Gather { root } if len >= team.long => plan.gather_long(team, root, input, result, len),
            Operation::Gather { root } => plan.gather_short(team, root, input, result, len),
            Operation::Reduce { root } if len >= team.long && n > 2 => {
                plan.reduce_long(team, root, input, result, element);
            }
            Operation::Reduce { root } => plan.reduce_short(team, root, input, result),
            Operation::Allreduce if len >= team.long && n > 2 => plan.allreduce_long(team, input, result, element),
            Operation::Allreduce => {
                let spare = plan.scratch(len);
                plan.allreduce_short(team, input, result, spare);
            }
            Operation::ReduceScatter => plan.reduce_scatter(team, input, result, len),
            Operation::Allgather if len * n >= team.long => plan.allgather_long(team, input, result, len),
            Operation::Allgather => plan.allgather_short(team, input, result, len),
            Operation::Alltoall => plan.alltoall(team, input, result, len),
        }
        plan
    }

    fn scratch(&mut self, len: usize) -> Span {
        let at = self.scratch;
        self.scratch += len;
        Span {
            buffer: Buffer::Scratch,
            at,
            len,
        }
    }

    fn send(&mut self, to: Rank, span: Span) {
        self.steps.push(Step::Send { to, span });
    }

    fn recv(&mut self, from: Rank, span: Span) {
        self.steps.push(Step::Recv { from, span });
    }

    fn copy(&mut self, from: Span, into: Span) {
        self.steps.push(Step::Copy { from, into });
    }

    fn combine(&mut self, from: Span, into: Span) {
        self.steps.push(Step::Combine { from, into });
    }

    fn wait(&mut self) {
        self.steps.push(Step::Wait);
    }
}

/// The bytes that a member reads and writes of its caller's two buffers; `len` is what `Plan::new` is given.
pub fn lengths(operation: Operation, team: Team, len: usize) -> (usize, usize) {
    let all = len * team.size;
    let at = |root: Rank, len: usize| if root == team.rank { len } else { 0 };
    match operation {
        Operation::Barrier => (0, 0),
        Operation::Broadcast { .. } => (0, len),
        Operation::Alltoall => (all, all),
        Operation::Allreduce => (len, len),
        Operation::Allgather => (len, all),
        Operation::ReduceScatter => (all, len),
        Operation::Reduce { root } => (len, at(root, len)),
        Operation::Scatter { root } => (at(root, all), len),
        Operation::Gather { root } => (len, at(root, all)),
    }
}

/// Data cut at element borders into one part for each member.
#[derive(Clone, Copy)]
struct Blocks {
    whole: Span,
    element: usize,
    parts: usize,
}

impl Blocks {
    fn new(whole: Span, element: usize, parts: usize) -> Blocks {
        Blocks { whole, element, parts }
    }

    /// The first byte of part `index`.
    fn start(&self, index: usize) -> usize {
        let count = self.whole.len / self.element.max(1);
        let (each, more) = (count / self.parts, count % self.parts);
        (each * index + index.min(more)) * self.element
    }

    fn get(&self, index: usize) -> Span {
        self.run(index, 1)
    }

    /// The span of `count` parts in a row.
    fn run(&self, index: usize, count: usize) -> Span {
        let (start, end) = (self.start(index), self.start(index + count));
        self.whole.part(start, end - start)
    }
}
