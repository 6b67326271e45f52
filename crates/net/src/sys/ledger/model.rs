//! Runs every sequence of a few steps on a ledger and on a simple model, which keeps the message
//! numbers of each slab.

use std::collections::BTreeMap;

use super::*;

/// A step of a sequence.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A slab is sent in this number of messages.
    Send(usize),
    /// A slab is sent whose message the kernel refuses.
    Refused,
    /// A slab is sent, and it is unknown whether the kernel has its message.
    Doubtful,
    /// The kernel releases the oldest lent message.
    Oldest,
    /// The kernel releases the newest one.
    Newest,
    /// The kernel releases all from the oldest to the newest.
    All,
    /// The kernel sends a notification for a message that it was not lent.
    Unknown,
}

const STEPS: [Step; 8] = [
    Step::Send(1),
    Step::Send(2),
    Step::Refused,
    Step::Doubtful,
    Step::Oldest,
    Step::Newest,
    Step::All,
    Step::Unknown,
];

/// Steps in each sequence.
const LEN: usize = 7;

/// The state of a slab in the model.
struct Slab {
    address: *const u8,
    /// Messages that the kernel may still read.
    away: Vec<u32>,
    has_come_back: bool,
}

#[derive(Default)]
struct Model {
    slabs: BTreeMap<usize, Slab>,
    next: u32,
    is_closed: bool,
    is_abandoned: bool,
}

impl Model {
    fn oldest(&self) -> Option<u32> {
        self.slabs.values().flat_map(|slab| &slab.away).copied().min()
    }

    fn newest(&self) -> Option<u32> {
        self.slabs.values().flat_map(|slab| &slab.away).copied().max()
    }

    fn settle(&mut self, first: u32, last: u32) {
        for slab in self.slabs.values_mut().filter(|_| !self.is_abandoned) {
            slab.away.retain(|number| !(first..=last).contains(number));
        }
    }
}

/// One ledger, its lender and the model.
struct World {
    ledger: Ledger,
    returns: Returns,
    model: Model,
}

impl World {
    fn send(&mut self, messages: usize, ending: Step) {
        let place = self.ledger.begin();
        let number = self.model.slabs.len();
        let mut away = Vec::new();
        for _ in 0..messages {
            let is_recorded = self.ledger.record(place);
            assert_eq!(is_recorded, !self.model.is_closed);
            if !is_recorded {
                break;
            }
            away.push(self.model.next);
            self.model.next += 1;
        }
        match ending {
            Step::Refused if !away.is_empty() => {
                self.ledger.take_back();
                away.pop();
                self.model.next -= 1;
            }
            Step::Doubtful => {
                self.ledger.doubt();
                self.model.is_closed = true;
            }
            _ => {}
        }
        let slab: Box<[u8]> = vec![number as u8; 4].into();
        let address = slab.as_ptr();
        self.model.slabs.insert(number, Slab { address, away, has_come_back: false });
        self.ledger.seal(place, Loan { slab, start: 0, number }, self.returns.clone());
    }

    fn take(&mut self, step: Step) {
        let settled = match step {
            Step::Send(messages) => return self.send(messages, step),
            Step::Refused | Step::Doubtful => return self.send(1, step),
            Step::Oldest => self.model.oldest().map(|number| (number, number)),
            Step::Newest => self.model.newest().map(|number| (number, number)),
            Step::All => self.model.oldest().zip(self.model.newest()),
            Step::Unknown => {
                let outcome = self.ledger.settle(self.model.next, self.model.next);
                assert_eq!(outcome.is_err(), !self.model.is_abandoned);
                (self.model.is_closed, self.model.is_abandoned) = (true, true);
                return;
            }
        };
        if let Some((first, last)) = settled {
            assert!(self.ledger.settle(first, last).is_ok());
            self.model.settle(first, last);
        }
    }

    /// Compares the returned loans with the model.
    fn check(&mut self, order: &[Step]) {
        while let Some(loan) = self.returns.take() {
            let slab = self.model.slabs.get_mut(&loan.number).unwrap();
            assert!(!slab.has_come_back, "{order:?}: slab {} comes back twice", loan.number);
            slab.has_come_back = true;
            let is_own = loan.slab.as_ptr() == slab.address;
            assert!(
                !is_own || slab.away.is_empty(),
                "{order:?}: returned memory that the kernel may read"
            );
            assert!(loan.slab.iter().all(|octet| usize::from(*octet) == loan.number));
        }
        for (number, slab) in &self.model.slabs {
            assert!(
                slab.has_come_back || !slab.away.is_empty(),
                "{order:?}: slab {number} was not returned"
            );
        }
    }
}

#[test]
fn memory_that_the_kernel_may_read_is_returned_in_no_order_of_steps() {
    let orders = STEPS.len().pow(LEN as u32);
    for mut order in 0..orders {
        let steps = [(); LEN].map(|()| {
            let step = STEPS[order % STEPS.len()];
            order /= STEPS.len();
            step
        });
        let (ledger, returns) = (Ledger::new(), Returns::new());
        let mut world = World { ledger, returns, model: Model::default() };
        for (at, step) in steps.into_iter().enumerate() {
            world.take(step);
            world.check(&steps[..=at]);
        }
    }
}
