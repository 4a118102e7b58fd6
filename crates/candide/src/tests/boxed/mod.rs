//! Tests of values outside of records: each is dropped once, when nothing sees it any more, by a
//! thread that holds nothing.

mod attempts;
mod drops;
mod ends;
mod lives;
#[cfg(not(sanitized))]
mod refusals;
mod snapshots;
mod threads;

use super::waiting::eventually;
use crate::api::ValueTable;
use crate::engine::Protocol;
use crate::{Database, Ordered, TableOptions};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The values that a test has made.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Made>>);

#[derive(Default)]
struct Made {
    /// The number of times that each value was dropped, by the number of the value.
    drops: Vec<u32>,
}

/// A value whose drops are counted.
struct Probe {
    number: usize,
    /// Says the same, in memory that the value owns: a sanitizer notices a use after the drop.
    inside: Box<usize>,
    ledger: Ledger,
    /// What the drop does besides.
    at_drop: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Ledger {
    fn probe(&self) -> Probe {
        let mut made = self.0.lock().unwrap();
        made.drops.push(0);
        let number = made.drops.len() - 1;
        Probe { number, inside: Box::new(number), ledger: self.clone(), at_drop: None }
    }

    /// Makes a value whose drop calls a function.
    fn probe_with(&self, at_drop: impl Fn() + Send + Sync + 'static) -> Probe {
        let mut probe = self.probe();
        probe.at_drop = Some(Box::new(at_drop));
        probe
    }

    fn made(&self) -> usize {
        self.0.lock().unwrap().drops.len()
    }

    /// Returns the values that have not been dropped. Fails if one was dropped twice.
    fn alive(&self) -> BTreeSet<usize> {
        let made = self.0.lock().unwrap();
        let twice = made.drops.iter().position(|&drops| drops > 1);
        assert_eq!(twice, None, "a value was dropped twice");
        made.drops.iter().enumerate().filter(|(_, drops)| **drops == 0).map(|(at, _)| at).collect()
    }

    fn is_alive(&self, number: usize) -> bool {
        self.alive().contains(&number)
    }
}

impl Probe {
    /// Returns the number of the value, which is alive.
    fn number(&self) -> usize {
        assert_eq!(*self.inside, self.number);
        assert!(self.ledger.is_alive(self.number), "a value is read that was dropped");
        self.number
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.ledger.0.lock().unwrap().drops[self.number] += 1;
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        assert!(!name.contains("candide"), "{name} has dropped a value");
        if let Some(at_drop) = &self.at_drop {
            at_drop();
        }
    }
}

type Values<P> = ValueTable<u64, Probe, Ordered, P>;

fn table<P: Protocol>(db: &Database<P>) -> Values<P> {
    Values::open(db, "values", TableOptions::default()).unwrap()
}

fn scene<P: Protocol>() -> (Database<P>, Values<P>, Ledger) {
    let db = Database::<P>::builder().build().unwrap();
    let values = table(&db);
    (db, values, Ledger::default())
}

/// Checks that exactly the values that the rows name are alive, as soon as transactions have given
/// the session the opportunity to drop the others.
fn settle<P: Protocol>(db: &Database<P>, values: &Values<P>, ledger: &Ledger) {
    eventually("the drop of what was replaced", || {
        let named: BTreeSet<usize> =
            db.run(|tx| values.iter(tx).map(|row| Ok(row?.1.number())).collect()).unwrap();
        let alive = ledger.alive();
        assert!(named.is_subset(&alive), "{named:?} of {alive:?}: a row names what is gone");
        named == alive
    });
}
