//! Histories of transactions that observe ranges. The versions of each transaction must be those of
//! one moment, and each answer must be the one that its version gives.

use crate::history::Access;
use crate::protocols::recorded::{Event, Transaction};
use crate::protocols::{Occ, Recorded};
use crate::sync::size::share;
use crate::sync::{Point, Random, with_hook};
use crate::tests::random_transactions::Judge;
use crate::tests::rows::Item;
use crate::tests::transactions::ONCE;
use crate::{Abort, Database, RunOptions, Session, Table, Tx};
use candide_check::Options;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;

type Recording = Recorded<Occ>;

const KEYS: u64 = 3;
const AT_FIRST: u8 = 100;

/// An operation. Except for the last two, it concerns the small number of an item.
#[derive(Debug, Clone, Copy)]
enum Step {
    Add(u64, i16),
    IsWithin(u64, u8, u8),
    Read(u64),
    /// Changes another unit of the item.
    Other(u64),
    Validate,
}

impl Step {
    /// Draws an operation that writes keys of `written` only.
    fn drawn(random: &mut Random, keys: &[u64], written: &[u64]) -> Step {
        let pick =
            |random: &mut Random, keys: &[u64]| keys[random.below(keys.len() as u64) as usize];
        match random.below(12) {
            0..4 => Step::Add(pick(random, written), random.below(160) as i16 - 80),
            4..9 => {
                let bound = random.below(256) as u8;
                let (least, most) =
                    if random.below(2) == 0 { (0, bound) } else { (bound.max(1), 255) };
                // Own additions count.
                let of = if random.below(2) == 0 { keys } else { written };
                Step::IsWithin(pick(random, of), least, most)
            }
            9 => Step::Read(pick(random, keys)),
            10 => Step::Validate,
            _ => Step::Other(pick(random, written)),
        }
    }
}

/// What an attempt was told of a number.
#[derive(Debug)]
struct Answer {
    key: u64,
    /// The summands that the attempt had staged before.
    staged: Vec<i16>,
    range: RangeInclusive<u8>,
    told: Result<bool, Abort>,
}

impl Answer {
    /// Returns what the attempt had to be told, if the number was `number`.
    fn for_number(&self, mut number: i16) -> Result<bool, Abort> {
        for summand in &self.staged {
            number += summand;
            if u8::try_from(number).is_err() {
                return Err(Abort::Overflow);
            }
        }
        Ok(self.range.contains(&(number as u8)))
    }
}

/// What attempts were told and what they staged, by the time at which the attempt began.
#[derive(Debug, Default)]
struct Notes {
    answers: HashMap<u64, Vec<Answer>>,
    staged: HashMap<u64, BTreeMap<u64, Vec<i16>>>,
}

/// Runs a script in a transaction, and calls `between` after each operation.
fn play(
    tx: &Tx<'_, Recording>,
    items: &Table<Item, Recording>,
    script: &[Step],
    notes: &RefCell<Notes>,
    between: &dyn Fn(),
) -> Result<(), Abort> {
    let begun = tx.state.borrow().attempt_for_tests().begun();
    let mut staged = BTreeMap::<u64, Vec<i16>>::new();
    let tell = |key, staged: &BTreeMap<u64, Vec<i16>>, range, told: Result<bool, Abort>| {
        if !told.is_err_and(|abort| abort.is_conflict()) {
            let staged = staged.get(&key).cloned().unwrap_or_default();
            let answer = Answer { key, staged, range, told };
            notes.borrow_mut().answers.entry(begun).or_default().push(answer);
        }
        told
    };
    for step in script {
        match *step {
            Step::Add(key, summand) => {
                let by = summand.unsigned_abs() as u8;
                let update = if summand < 0 { Item::SMALL.sub(by) } else { Item::SMALL.add(by) };
                items.update(tx, key, update)?;
                staged.entry(key).or_default().push(summand);
                notes.borrow_mut().staged.insert(begun, staged.clone());
            }
            Step::IsWithin(key, least, most) => {
                let told = match least {
                    0 => items.is_within(tx, key, Item::SMALL, ..=most),
                    _ => items.is_within(tx, key, Item::SMALL, least..),
                };
                tell(key, &staged, least..=most, told)?;
            }
            Step::Read(key) => {
                let read = items.read(tx, key, Item::SMALL);
                let range = read.map_or(0..=0, |number| number..=number);
                tell(key, &staged, range, read.map(|_| true))?;
            }
            Step::Other(key) => items.modify(tx, key, Item::OTHER, |other| *other += 1)?,
            Step::Validate => tx.validate()?,
        }
        between();
    }
    Ok(())
}

/// The session whose transactions run in the middle of those of the first session.
struct Other {
    session: Session<Recording>,
    items: Table<Item, Recording>,
    db: Database<Recording>,
    random: Random,
    notes: Rc<RefCell<Notes>>,
    /// The keys that the transaction of the first session writes.
    written: Vec<u64>,
    /// The number of transactions that may still run beside the present one.
    left: u32,
    /// The number of ranges that were examined again.
    ranged: u64,
}

impl Other {
    /// Runs a transaction, or begins an epoch, or does nothing. While the first session `locks` its
    /// rows, they are avoided.
    fn interfere(&mut self, locks: bool) {
        if self.left == 0 || self.random.below(2) > 0 {
            return;
        }
        self.left -= 1;
        if self.random.below(6) == 0 {
            return self.db.inner.engine.epochs.pass();
        }
        let is_free = |key: &u64| !locks || !self.written.contains(key);
        let keys: Vec<u64> = (0..KEYS).filter(is_free).collect();
        if keys.is_empty() {
            return;
        }
        let script: Vec<Step> = (0..1 + self.random.below(3))
            .map(|_| Step::drawn(&mut self.random, &keys, &keys))
            .collect();
        let Other { session, items, notes, .. } = self;
        // A conflict or an overflow is recorded, too.
        let _ = session.with(ONCE()).run(|tx| play(tx, items, &script, notes, &|| ()));
    }
}

#[test]
fn each_answer_about_a_range_is_that_of_the_recorded_version() {
    for opaque in [true, false] {
        let db = Database::<Recording>::builder().manual_epochs(1).opaque(opaque).build().unwrap();
        let items = db.table::<Item>("items").unwrap();
        let rows = (0..KEYS).map(|id| Item { small: AT_FIRST, ..Item::new(id, 0) });
        db.run(|tx| items.insert_many(tx, rows.clone())).unwrap();
        let notes = Rc::new(RefCell::new(Notes::default()));
        let committed = run_beside_another(&db, &items, &notes);
        let events = db.take_history();
        let options = Options { strict: true, opaque, ..Options::default() };
        let mut judge = Judge::new(options, format!("opaque: {opaque}"));
        judge.hear(&events);
        judge.judge();
        let transactions: Vec<Transaction> = events
            .events
            .into_iter()
            .filter_map(|event| match event {
                Event::Transaction(transaction) => Some(transaction),
                Event::Forgotten(_) => None,
            })
            // Without opacity, an attempt that fails may have seen several moments.
            .filter(|transaction| opaque || transaction.committed)
            .collect();
        let loosened = check_answers(&transactions, &notes.borrow());
        assert!(committed > share(50), "{committed} transactions");
        assert!(loosened > share(200), "{loosened} answers");
    }
}

/// Runs transactions, in the middle of which another session runs others. Returns how many have
/// committed after ranges were examined again.
fn run_beside_another(
    db: &Database<Recording>,
    items: &Table<Item, Recording>,
    notes: &Rc<RefCell<Notes>>,
) -> u64 {
    let other = Rc::new(RefCell::new(Other {
        session: db.session().unwrap(),
        items: items.clone(),
        db: db.clone(),
        random: Random::seeded(5),
        notes: notes.clone(),
        written: Vec::new(),
        left: 0,
        ranged: 0,
    }));
    let (mut session, mut random) = (db.session().unwrap(), Random::seeded(6));
    let in_hook = other.clone();
    let hook = move |point| {
        let locks = matches!(point, Point::Locked | Point::Ranged | Point::Validated);
        let is_open =
            matches!(point, Point::Unlocked | Point::Copied | Point::Moving | Point::Looked);
        // The points of the other session's own transactions are passed, too.
        if let Ok(mut other) = in_hook.try_borrow_mut() {
            other.ranged += u64::from(point == Point::Ranged);
            if locks || is_open {
                other.interfere(locks);
            }
        }
    };
    with_hook(hook, || {
        let mut committed = 0;
        let between = || other.borrow_mut().interfere(false);
        for _ in 0..share(5_000) {
            let keys: Vec<u64> = (0..KEYS).collect();
            let written = [random.below(KEYS), random.below(KEYS)];
            let script: Vec<Step> = (0..1 + random.below(5))
                .map(|_| Step::drawn(&mut random, &keys, &written))
                .collect();
            let before = {
                let other = &mut *other.borrow_mut();
                (other.written, other.left) = (written.to_vec(), 6);
                other.ranged
            };
            let options = RunOptions::new().attempts_max(20);
            let ended = session.with(options).run(|tx| play(tx, items, &script, notes, &between));
            assert!(matches!(ended, Ok(()) | Err(Abort::Overflow)), "{ended:?}");
            committed += u64::from(ended.is_ok() && other.borrow().ranged > before);
        }
        committed
    })
}

/// Compares all answers with the numbers in the versions that the history has. Returns the number
/// of answers.
fn check_answers(transactions: &[Transaction], notes: &Notes) -> u64 {
    let of_small = |access: &&Access| access.group == 0;
    let mut versions = BTreeMap::<(u64, u64), i16>::new();
    for transaction in transactions {
        for write in transaction.writes.iter().filter(of_small) {
            let staged = notes.staged.get(&transaction.begun).and_then(|of| of.get(&write.key[0]));
            let sum = staged.into_iter().flatten().sum();
            versions.insert((write.key[0], write.version.expect("a write has a version")), sum);
        }
    }
    let number = |key: u64, version: u64| {
        let sums = versions.range((key, 0)..=(key, version)).map(|(_, sum)| sum);
        i16::from(AT_FIRST) + sums.sum::<i16>()
    };
    let mut answers = 0;
    for transaction in transactions {
        for answer in notes.answers.get(&transaction.begun).into_iter().flatten() {
            let is_it = |access: &&Access| of_small(access) && access.key[0] == answer.key;
            let read: BTreeSet<Option<u64>> =
                transaction.reads.iter().filter(is_it).map(|access| access.version).collect();
            let version = match read.first() {
                Some(&Some(version)) if read.len() == 1 => version,
                _ => panic!("{answer:?} of {transaction:?}"),
            };
            let number = number(answer.key, version);
            let expected = answer.for_number(number);
            assert_eq!(answer.told, expected, "{answer:?} of {number} in {transaction:?}");
            answers += 1;
        }
    }
    answers
}
