//! The verdicts on ten thousand small histories are those of an oracle that tries every serial
//! order.

use crate::common::{Random, Row, Shape, contains, history, told, unversioned};
use candide_check::{Access, Anomaly, Checker, Event, Forgotten, Options, Transaction, Verdict};
use std::collections::{BTreeSet, HashMap};

/// The last version of each unit, and whether it has a row; version 0 without one at first.
type Model = HashMap<(Row, u8), (u64, bool)>;

struct Oracle<'h> {
    transactions: Vec<&'h Transaction>,
    forgotten: Vec<Forgotten>,
    rows: BTreeSet<Row>,
    strict: bool,
}

impl<'h> Oracle<'h> {
    fn new(events: &'h [Event], strict: bool, opaque: bool) -> Self {
        let mut oracle =
            Self { transactions: Vec::new(), forgotten: Vec::new(), rows: BTreeSet::new(), strict };
        for event in events {
            match event {
                Event::Transaction(transaction) => {
                    let accesses = transaction.reads.iter().chain(&transaction.writes);
                    oracle.rows.extend(accesses.map(row));
                    if transaction.committed || opaque {
                        oracle.transactions.push(transaction);
                    }
                }
                Event::Forgotten(forgotten) => oracle.forgotten.push(forgotten.clone()),
            }
        }
        oracle
    }

    fn serializable(&self) -> bool {
        self.transactions.iter().all(|transaction| self.saw_its_moment(transaction))
            && self.extend(&mut vec![false; self.transactions.len()], &Model::new())
    }

    /// Returns whether a look-back saw of each unit the highest version up to its time.
    fn saw_its_moment(&self, transaction: &Transaction) -> bool {
        let Some(as_of) = transaction.as_of else { return true };
        let is_highest = |row: &Row, group: u8, seen: u64| {
            let writes = self.transactions.iter().flat_map(|transaction| &transaction.writes);
            let of_unit = writes
                .filter(|write| (write.table, &write.key, write.group) == (row.0, &row.1, group));
            let mut versions = of_unit.filter_map(|write| write.version);
            seen <= as_of && versions.all(|version| version <= seen || version > as_of)
        };
        let missing = |row: &Row| unversioned(row, transaction, &self.forgotten);
        let reads = transaction.reads.iter().all(|access| match access.version {
            Some(version) => is_highest(&row(access), access.group, version),
            None => is_highest(&row(access), 0, missing(&row(access))),
        });
        reads && self.unmet(transaction).all(|row| is_highest(row, 0, missing(row)))
    }

    /// The rows that a transaction's scans have gone past, which it has not read.
    fn unmet<'t>(&'t self, transaction: &'t Transaction) -> impl Iterator<Item = &'t Row> {
        let met: Vec<Row> = transaction.reads.iter().map(row).collect();
        let unmet = self.rows.iter().filter(move |row| !met.contains(row));
        unmet.filter(|row| transaction.scans.iter().any(|scan| contains(scan, row)))
    }

    /// Returns whether the transactions that are not done can follow in some order.
    fn extend(&self, done: &mut Vec<bool>, model: &Model) -> bool {
        let open: Vec<usize> = (0..done.len()).filter(|number| !done[*number]).collect();
        open.is_empty()
            || open.iter().any(|number| {
                let next = self.transactions[*number];
                let too_early =
                    open.iter().any(|other| self.transactions[*other].ended < next.begun);
                if self.strict && too_early {
                    return false;
                }
                let mut model = model.clone();
                done[*number] = true;
                let found = self.replay(next, &mut model) && self.extend(done, &model);
                done[*number] = false;
                found
            })
    }

    /// Returns whether a transaction can have run in this state.
    fn replay(&self, transaction: &Transaction, model: &mut Model) -> bool {
        let current = |model: &Model, row: &Row, group| {
            model.get(&(row.clone(), group)).copied().unwrap_or((0, false))
        };
        let missing = |row: &Row| (unversioned(row, transaction, &self.forgotten), false);
        let reads = transaction.reads.iter().all(|access| match access.version {
            Some(version) => {
                current(model, &row(access), access.group) == (version, access.present)
            }
            None => !access.present && current(model, &row(access), 0) == missing(&row(access)),
        });
        let scans = self.unmet(transaction).all(|row| current(model, row, 0) == missing(row));
        let writes = transaction.writes.iter().all(|access| {
            let version = access.version.expect("writes have versions");
            let before = model.insert((row(access), access.group), (version, access.present));
            before.is_none_or(|(before, _)| before < version)
        });
        reads && scans && writes
    }
}

fn row(access: &Access) -> Row {
    (access.table, access.key.clone())
}

fn verdict(events: &[Event], options: Options) -> Verdict {
    let mut checker = Checker::new(options);
    events.iter().for_each(|event| checker.feed(event));
    checker.finish().verdict
}

#[test]
fn verdicts_are_those_of_all_serial_orders() {
    let mut random = Random(1);
    // Good and bad ones, as committed, strict and opaque ask for.
    let mut counts = HashMap::new();
    let mut names: HashMap<&str, u32> = HashMap::new();
    for number in 0..10_000 {
        let seed = random.0;
        let mut shape =
            Shape { keys: 2 + random.below(4), overlap: 1 + random.below(4), ..Shape::SMALL };
        shape.transactions = 4 + random.below(4);
        shape.wrong = [20, 80, 160, 240][random.below(4) as usize];
        if random.percent(20) {
            (shape.wrong, shape.shifted) = (0, 0);
        }
        let mut events = history(&mut random, shape);
        random.shuffle(&mut events);
        for (strict, opaque) in [(false, false), (true, false), (false, true), (true, true)] {
            let good = Oracle::new(&events, strict, opaque).serializable();
            let verdict = verdict(&events, Options { strict, opaque, ..Options::default() });
            let same = match &verdict {
                Verdict::Serializable => good,
                Verdict::Violated(_) => !good,
                Verdict::Inconclusive(_) => false,
            };
            assert!(
                same,
                "history {number} from {seed}, strict {strict}, opaque {opaque}: {good}, {verdict:?}\n{}",
                told(&events)
            );
            assert!(
                good || shape.wrong > 0,
                "history {number} from {seed} should be good\n{}",
                told(&events)
            );
            *counts.entry((strict, opaque, good)).or_insert(0_u32) += 1;
            if let Verdict::Violated(violation) = verdict {
                *names.entry(violation.anomaly.name()).or_default() += 1;
            }
        }
    }
    println!("{counts:?} {names:?}");
    assert!(counts.len() == 8 && counts.values().all(|count| *count > 2_000), "{counts:?}");
    assert!(names.len() >= 8 && names.contains_key(Anomaly::WrongMoment.name()), "{names:?}");
}
