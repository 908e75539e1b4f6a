//! The steps of a story: what one node does, to which peer, and what the model makes of it.

use super::*;

impl<T: Connected> Story<T> {
    pub(super) fn act(&mut self, step: &Step) {
        let Step {
            node, peer, place, how, ..
        } = *step;
        match step.what {
            0..3 => self.write_cells(step),
            3 | 4 => self.read_cells(step),
            5 => self.add(step, cell(node, place), false),
            6 | 7 => self.add(step, COUNTER, true),
            8 | 9 => self.long(step),
            10 | 11 => {
                let tag = self.sent.len() as u64;
                let model = self.model(node, peer).clone();
                let len = [8, 100, 280, 500][place];
                if self.bed.send(letter(node, peer, tag, len)).is_ok() {
                    self.sent.push((node, peer, model));
                }
            }
            12 => self.receive(node),
            13 => self.wrong(step),
            14 | 15 => self.wait(step),
            16 => self.fleeting(step),
            17 if how < 100 => self.close(node),
            17 if how < 150 && T::BREAKS && self.torn => self.bed.break_off(node, peer),
            17 if how < 180 && T::BREAKS && self.torn => self.bed.talk_nonsense(node, peer),
            _ => {
                self.bed.world.borrow_mut().now += u64::from(how & 3);
                self.bed.progress(node);
            }
        }
    }

    /// A node waits for what others do not do, or is about to sleep.
    fn wait(&mut self, step: &Step) {
        for _ in 0..step.how >> 4 {
            if step.how & 1 == 1 {
                let Node { engine, reporter, .. } = self.bed.node(step.node);
                engine.may_sleep(reporter);
                continue;
            }
            for _ in 0..32 {
                self.bed.progress(step.node);
            }
        }
    }

    pub(super) fn receive(&mut self, node: PeerId) {
        let ignore = u64::MAX;
        self.bed.recv(node, &[500], Recv { ignore, ..tagged(0) });
        self.received[node as usize] += 1;
    }

    fn write_cells(&mut self, step: &Step) {
        let (value, other) = (self.tick(), (step.place + 1) % CELLS);
        let (first, second) = (cell(step.node, step.place), cell(step.node, other));
        let two = step.how & 2 == 2;
        let (parts, local) = if two {
            (vec![(first, 8, KEY), (second, 8, KEY)], words(&[value, value]))
        } else {
            (vec![(first, 8, KEY)], words(&[value]))
        };
        if self.access(step, Access::Write, &parts, local, None) {
            let model = self.model(step.node, step.peer);
            model.cells[step.place] = value;
            if two {
                model.cells[other] = value;
            }
        }
    }

    fn read_cells(&mut self, step: &Step) {
        let at = cell(step.node, 0);
        let cut = step.how as usize >> 3;
        let parts = [(at, cut, KEY), (at + cut as u64, 32 - cut, KEY)];
        let parts = if step.how & 2 == 2 {
            &parts[..]
        } else {
            &[(at, 32, KEY)]
        };
        if self.access(step, Access::Read, parts, words(&[0; CELLS]), None) {
            let cells = self.model(step.node, step.peer).cells;
            self.expect(&cells);
        }
    }

    fn expect(&mut self, words: &[u64]) {
        self.asked.last_mut().unwrap().expected = Some(super::atomic::bytes(words));
    }

    fn add(&mut self, step: &Step, at: u64, shared: bool) {
        let form = if step.how & 2 == 2 { Form::Fetch } else { Form::Base };
        let (one, result) = (words(&[1]), words(&[0]));
        let atomic = Atomic {
            op: on_u64(form, SUM),
            to: step.peer,
            target: AtomicTarget::Memory(remote(&[(at, 8, KEY)])),
            len: 8,
            operand: one.iov(),
            compare: UserIov::default(),
            result: if form == Form::Fetch {
                result.iov()
            } else {
                UserIov::default()
            },
            data: None,
            inject: step.how & 1 == 1,
            fence: step.how & 0x38 == 0,
            context: self.asked.len(),
            tell: Tell::Queue,
        };
        self.bed.world.borrow_mut().locals.insert(atomic.context, result);
        if self.bed.atomic(step.node, &atomic).is_err() {
            return;
        }
        self.note(step, CompletedOp::Atomic(form), result, None);
        if shared {
            self.added[step.peer as usize] += 1;
            self.asked.last_mut().unwrap().counted = form == Form::Fetch;
            return;
        }
        let number = self.asked.len() - 1;
        let loose = !self.bed.node(step.node).engine.amos().is_empty();
        let model = self.model(step.node, step.peer);
        if loose {
            model.loose.push(number);
        }
        let cell = &mut model.cells[step.place];
        let was = *cell;
        *cell += 1;
        if form == Form::Fetch {
            self.expect(&[was]);
        }
    }

    fn long(&mut self, step: &Step) {
        let place = step.place % SLOTS;
        let at = slot(step.node, place);
        let cut = step.how as usize;
        let parts = [(at, cut, KEY), (at + cut as u64, SLOT - cut, KEY)];
        let parts = if step.how & 2 == 2 {
            &parts[..]
        } else {
            &[(at, SLOT, KEY)]
        };
        if step.how & 4 == 4 {
            let value = self.model(step.node, step.peer).slots[place];
            if self.access(step, Access::Read, parts, words(&[0; SLOT / 8]), None) {
                self.expect(&[value; SLOT / 8]);
            }
            return;
        }
        let value = self.tick();
        if self.access(step, Access::Write, parts, words(&[value; SLOT / 8]), None) {
            self.model(step.node, step.peer).slots[place] = value;
        }
    }

    /// What a target does not allow. What is read into keeps what it held.
    fn wrong(&mut self, step: &Step) {
        let len = [8, 300][step.place % 2];
        let rows = [
            (Access::Write, (0, len, SHUT), Error::NoRights),
            (Access::Read, (0, len, 99), Error::NoKey),
            (Access::Write, (SIZE as u64 - 7, len, KEY), Error::OutOfRange),
            (Access::Read, (1000, len, SHUT), Error::OutOfRange),
        ];
        let (kind, part, error) = rows[usize::from(step.how >> 6)];
        let parts = [(cell(step.node, 0), 8, KEY), part];
        let parts = if step.how & 2 == 2 { &parts[..] } else { &parts[1..] };
        let all = parts.iter().map(|(_, len, _)| len).sum();
        let local = Lent::new(&[all], 3);
        if self.access(step, kind, parts, local, Some(error)) && kind == Access::Read {
            self.asked.last_mut().unwrap().expected = Some(vec![3; all]);
        }
    }

    /// Accesses a region that may be closed meanwhile.
    fn fleeting(&mut self, step: &Step) {
        let len = [40, 300, 700, 2000][step.place];
        let (kind, local) = match step.how & 4 {
            0 => (Access::Write, Lent::new(&[len / 3, len - len / 3], 4)),
            _ => (Access::Read, Lent::new(&[len], 4)),
        };
        let cut = step.how as usize / 8;
        let parts = [(7, cut, FLEETING), (900, len - cut, FLEETING)];
        let parts = if step.how & 2 == 2 {
            &parts[..]
        } else {
            &[(7, len, FLEETING)]
        };
        if self.access(step, kind, parts, local, None) {
            self.asked.last_mut().unwrap().fleeting = true;
        }
    }

    /// Closes that region of a node, after which nobody may touch it, and opens another.
    fn close(&mut self, node: PeerId) {
        let closed = self.bed.nodes[node as usize].regions.remove(FLEETING);
        closed.expect("nobody reaches it by himself");
        let memory = open_fleeting(&self.bed, node);
        let memory = std::mem::replace(&mut self.fleeting[node as usize], memory);
        scribble(&memory);
        self.bed.world.borrow_mut().closed.push(memory);
    }
}
