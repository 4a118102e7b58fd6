//! Keys of unique indexes that rows exchange within a transaction.

use super::entries::assert_entries_match_rows;
use super::indexed_rows::{Filed, Parcel};
use super::transactions::{CONFLICT, ONCE, run};
use crate::engine::{Protocol, Versioned};
use crate::sync::Random;
use crate::sync::size::share;
use crate::{Abort, Database, Hashed, Index, Session, Table, Tx};
use std::collections::BTreeMap;

/// A table with the rows 1 to 3, whose codes are their numbers.
struct Scene<P: Protocol> {
    filed: Table<Filed, P>,
    by_code: Index<Filed, u32, Hashed, P>,
    session: Session<P>,
    db: Database<P>,
}

fn row(number: u16, code: u32) -> Filed {
    Parcel { code, ..Parcel::new(1, number) }.into()
}

fn scene<P: Protocol>() -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let filed = db.table::<Filed>("filed").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| filed.insert_many(tx, (1..=3).map(|number| row(number, number.into()))));
    Scene { by_code: filed.index(Filed::BY_CODE), filed, session, db }
}

impl<P: Protocol> Scene<P> {
    /// Asserts that the rows with these numbers have these codes, and that there are no others.
    fn assert_codes(&mut self, wanted: &[(u16, u32)]) {
        let mut codes = Vec::new();
        self.filed.for_each_quiescent(|row| codes.push((row.number, row.code))).unwrap();
        codes.sort();
        assert_eq!(codes, wanted, "{}", P::NAME);
        let by_code = &self.by_code;
        run(&mut self.session, |tx| {
            for &(number, code) in wanted {
                assert_eq!(by_code.get(tx, &code, Filed::NUMBER)?, Some(number), "{}", P::NAME);
            }
            Ok(())
        });
        assert_entries_match_rows(&mut self.session, &self.filed);
    }
}

/// Gives the row with this number another code.
pub(super) fn set_unique_key<P: Protocol>(
    filed: &Table<Filed, P>,
    tx: &Tx<'_, P>,
    number: u16,
    code: u32,
) -> Result<(), Abort> {
    filed.modify(tx, &(1, number), Filed::CODE, |old| *old = code)
}

/// The numbers of rows with their codes.
type Codes = &'static [(u16, u32)];

pub(super) type Act<P> = fn(&Table<Filed, P>, &Tx<'_, P>) -> Result<(), Abort>;

protocol_tests!(all: rows_exchange_their_keys);
fn rows_exchange_their_keys<P: Protocol>() {
    let swaps: [(Act<P>, Codes); 10] = [
        (
            |filed, tx| {
                set_unique_key(filed, tx, 1, 2)?;
                set_unique_key(filed, tx, 2, 1)
            },
            &[(1, 2), (2, 1), (3, 3)],
        ),
        (
            |filed, tx| {
                filed.put(tx, row(1, 2))?;
                filed.put(tx, row(2, 3))?;
                filed.put(tx, row(3, 1))
            },
            &[(1, 2), (2, 3), (3, 1)],
        ),
        (
            // The keys are exchanged in the opposite order, so that two rows wait at the same time.
            |filed, tx| {
                set_unique_key(filed, tx, 1, 3)?;
                set_unique_key(filed, tx, 2, 1)?;
                set_unique_key(filed, tx, 3, 2)
            },
            &[(1, 3), (2, 1), (3, 2)],
        ),
        (
            |filed, tx| {
                filed.delete(tx, &(1, 1))?;
                filed.insert(tx, row(7, 1))
            },
            &[(2, 2), (3, 3), (7, 1)],
        ),
        (
            |filed, tx| {
                filed.insert(tx, row(7, 1))?;
                filed.delete(tx, &(1, 1))
            },
            &[(2, 2), (3, 3), (7, 1)],
        ),
        (
            |filed, tx| {
                // A row that waits is changed, and then deleted.
                filed.insert(tx, row(7, 1))?;
                filed.delete(tx, &(1, 7))?;
                set_unique_key(filed, tx, 2, 1)?;
                set_unique_key(filed, tx, 2, 5)
            },
            &[(1, 1), (2, 5), (3, 3)],
        ),
        (
            |filed, tx| {
                // Row 1 takes back its own key, which it had given up.
                set_unique_key(filed, tx, 1, 2)?;
                set_unique_key(filed, tx, 1, 1)
            },
            &[(1, 1), (2, 2), (3, 3)],
        ),
        (
            |filed, tx| {
                // Two rows wait for one key; the second row gets it.
                set_unique_key(filed, tx, 1, 3)?;
                set_unique_key(filed, tx, 2, 3)?;
                set_unique_key(filed, tx, 1, 4)?;
                set_unique_key(filed, tx, 3, 1)
            },
            &[(1, 4), (2, 3), (3, 1)],
        ),
        (
            |filed, tx| {
                // The transaction upserts an existing row and a missing row.
                filed.upsert(tx, row(1, 9), Filed::NOTE.add(1))?;
                filed.upsert(tx, row(8, 2), Filed::NOTE.add(1))?;
                filed.modify(tx, &(1, 2), (Filed::CODE, Filed::COLOUR), |both| *both = (8, 8))
            },
            &[(1, 1), (2, 8), (3, 3), (8, 2)],
        ),
        (
            |filed, tx| {
                // A row that this transaction has inserted gives its key to another.
                filed.insert(tx, row(8, 8))?;
                filed.insert(tx, row(9, 8))?;
                filed.delete(tx, &(1, 8))?;
                filed.insert(tx, row(8, 9))
            },
            &[(1, 1), (2, 2), (3, 3), (8, 9), (9, 8)],
        ),
    ];
    for (swap, wanted) in swaps {
        let mut scene = scene::<P>();
        let filed = scene.filed.clone();
        run(&mut scene.session, |tx| swap(&filed, tx));
        scene.assert_codes(wanted);
        // The exchange of keys as a part of a transaction.
        let mut scene = self::scene::<P>();
        let filed = scene.filed.clone();
        run(&mut scene.session, |tx| tx.attempt(|tx| swap(&filed, tx)));
        scene.assert_codes(wanted);
    }
}

protocol_tests!(all: a_unique_key_of_two_rows_at_commit_is_refused);
fn a_unique_key_of_two_rows_at_commit_is_refused<P: Protocol>() {
    let mut scene = scene::<P>();
    let (filed, by_code) = (scene.filed.clone(), scene.by_code.clone());
    let refused: [Act<P>; 5] = [
        |filed, tx| filed.insert(tx, row(7, 1)),
        |filed, tx| set_unique_key(filed, tx, 1, 2),
        |filed, tx| {
            set_unique_key(filed, tx, 1, 2)?;
            set_unique_key(filed, tx, 2, 3)
        },
        |filed, tx| {
            filed.put(tx, row(7, 1))?;
            filed.put(tx, row(8, 1))?;
            filed.delete(tx, &(1, 1))
        },
        |filed, tx| {
            filed.delete(tx, &(1, 1))?;
            filed.insert(tx, row(7, 1))?;
            filed.insert(tx, row(1, 1))
        },
    ];
    for act in refused {
        assert_eq!(scene.session.run(|tx| act(&filed, tx)), Err(Abort::NotUnique), "{}", P::NAME);
        // As the error of a part, it can be handled.
        run(&mut scene.session, |tx| {
            assert_eq!(tx.attempt(|tx| act(&filed, tx)), Err(Abort::NotUnique), "{}", P::NAME);
            // A part within it is refused at its own end, the key notwithstanding.
            let outer = tx.attempt(|tx| {
                let inner = tx.attempt(|tx| act(&filed, tx));
                assert_eq!(inner, Err(Abort::NotUnique));
                Ok::<_, Abort>(())
            });
            assert_eq!(outer, Ok(()));
            Ok(())
        });
        scene.assert_codes(&[(1, 1), (2, 2), (3, 3)]);
    }
    // The index finds the row that had the key, until that row gives it up.
    run(&mut scene.session, |tx| {
        set_unique_key(&filed, tx, 1, 2)?;
        assert_eq!(by_code.get(tx, 2, Filed::NUMBER)?, Some(2));
        assert_eq!(by_code.get(tx, 1, ())?, None);
        assert_eq!(filed.read(tx, &(1, 1), Filed::CODE)?, 2);
        set_unique_key(&filed, tx, 2, 1)?;
        assert_eq!(by_code.get(tx, 2, Filed::NUMBER)?, Some(1));
        Ok(())
    });
    scene.assert_codes(&[(1, 2), (2, 1), (3, 3)]);
}

protocol_tests!(all: an_error_of_the_closure_takes_precedence_over_a_duplicate_key);
fn an_error_of_the_closure_takes_precedence_over_a_duplicate_key<P: Protocol>() {
    let mut scene = scene::<P>();
    let filed = scene.filed.clone();
    let with_end = |session: &mut Session<P>, act: Act<P>| {
        session.run(|tx| {
            set_unique_key(&filed, tx, 1, 2)?;
            act(&filed, tx)
        })
    };
    let session = &mut scene.session;
    assert_eq!(with_end(session, |_, _| Err(Abort::Indexed)), Err(Abort::Indexed));
    // A guard's error also comes first, since unique keys are checked at the end.
    let guard = |filed: &Table<Filed, P>, tx: &Tx<'_, P>| {
        filed.update(tx, &(1, 3), Filed::WEIGHT.sub(11).at_least(0))
    };
    assert_eq!(with_end(session, guard), Err(Abort::Guard), "{}", P::NAME);
    assert_eq!(with_end(session, |_, _| Ok(())), Err(Abort::NotUnique), "{}", P::NAME);
    // The next transaction finds no writes of the failed ones.
    run(session, |tx| set_unique_key(&filed, tx, 1, 9));
    scene.assert_codes(&[(1, 9), (2, 2), (3, 3)]);
}

protocol_tests!(all: parts_around_exchanged_keys_are_undone);
fn parts_around_exchanged_keys_are_undone<P: Protocol>() {
    let mut scene = scene::<P>();
    let (filed, by_code) = (scene.filed.clone(), scene.by_code.clone());
    let fail = |tx: &Tx<'_, P>, act: Act<P>| {
        let failed = tx.attempt(|tx| act(&filed, tx).and(Err::<(), _>(Abort::Indexed)));
        assert_eq!(failed, Err(Abort::Indexed));
    };
    run(&mut scene.session, |tx| {
        // A row waits for a key within an undone part.
        fail(tx, |filed, tx| set_unique_key(filed, tx, 1, 2));
        // A row waits since before an undone part, and the wait ends within the part: the key
        // becomes free, or the row changes again.
        set_unique_key(&filed, tx, 1, 2)?;
        fail(tx, |filed, tx| set_unique_key(filed, tx, 2, 1));
        fail(tx, |filed, tx| filed.delete(tx, &(1, 2)));
        fail(tx, |filed, tx| set_unique_key(filed, tx, 1, 7));
        assert_eq!(by_code.get(tx, 2, Filed::NUMBER)?, Some(2));
        // A part is not refused for a row that has waited before it.
        tx.attempt(|tx| set_unique_key(&filed, tx, 3, 8))?;
        tx.attempt(|tx| set_unique_key(&filed, tx, 2, 1))
    });
    scene.assert_codes(&[(1, 2), (2, 1), (3, 8)]);
    let still_waits = scene.session.run(|tx| {
        set_unique_key(&filed, tx, 1, 1)?;
        fail(tx, |filed, tx| set_unique_key(filed, tx, 2, 5));
        Ok(())
    });
    assert_eq!(still_waits, Err(Abort::NotUnique), "{}", P::NAME);
}

protocol_tests!(overlapping: a_released_unique_key_is_taken_by_one_of_two_transactions);
fn a_released_unique_key_is_taken_by_one_of_two_transactions<P: Protocol>() {
    let others: [Act<P>; 4] = [
        |filed, tx| filed.insert(tx, row(9, 2)),
        |filed, tx| set_unique_key(filed, tx, 3, 1),
        |filed, tx| filed.delete(tx, &(1, 2)),
        |filed, tx| {
            set_unique_key(filed, tx, 2, 3)?;
            set_unique_key(filed, tx, 3, 2)
        },
    ];
    for other_act in others {
        let mut scene = scene::<P>();
        let (filed, mut other) = (scene.filed.clone(), scene.db.session().unwrap());
        let mut inner = Ok(());
        let outer = scene.session.with(ONCE()).run(|tx| {
            set_unique_key(&filed, tx, 1, 2)?;
            if tx.attempt_number() == 1 {
                inner = other.with(ONCE()).run(|tx| other_act(&filed, tx));
            }
            set_unique_key(&filed, tx, 2, 1)
        });
        // The other transaction may have been first, or second, or have met a conflict.
        let is_served = |end: Result<(), Abort>| {
            end == Ok(()) || end == CONFLICT || end == Err(Abort::NotUnique)
        };
        assert!(is_served(outer) && is_served(inner), "{}: {outer:?} {inner:?}", P::NAME);
        assert!(outer == Ok(()) || inner == Ok(()), "{}: {outer:?} {inner:?}", P::NAME);
        assert_entries_match_rows(&mut scene.session, &filed);
    }
}

protocol_tests!(overlapping: a_duplicate_key_reported_at_commit_exists_in_the_serial_order);
/// A transaction is about to be refused for a key that another transaction gives up meanwhile.
fn a_duplicate_key_reported_at_commit_exists_in_the_serial_order<P: Protocol>() {
    let mut scene = scene::<P>();
    let (filed, mut other) = (scene.filed.clone(), scene.db.session().unwrap());
    let mut inner = Ok(());
    let outer = scene.session.run(|tx| {
        set_unique_key(&filed, tx, 1, 2)?;
        if tx.attempt_number() == 1 {
            inner = other.with(ONCE()).run(|tx| set_unique_key(&filed, tx, 2, 20));
        }
        // Read after the change, so that the refused transaction cannot come before it.
        filed.read(tx, &(1, 2), Filed::CODE).map(drop)
    });
    match inner {
        Ok(()) => assert_eq!(outer, Ok(()), "{}", P::NAME),
        _ => assert_eq!(outer, Err(Abort::NotUnique), "{}: {inner:?}", P::NAME),
    }
    assert_entries_match_rows(&mut scene.session, &filed);
}

protocol_tests!(versioned: snapshots_see_keys_before_and_after_an_exchange);
fn snapshots_see_keys_before_and_after_an_exchange<P: Versioned>() {
    let mut scene = scene::<P>();
    let (filed, by_code) = (scene.filed.clone(), scene.by_code.clone());
    let before = scene.db.snapshot();
    run(&mut scene.session, |tx| {
        set_unique_key(&filed, tx, 1, 2)?;
        set_unique_key(&filed, tx, 2, 1)?;
        filed.insert(tx, row(4, 3))?;
        filed.delete(tx, &(1, 3))
    });
    let after = scene.db.snapshot();
    for (snapshot, wanted) in [(before, [1, 2, 3]), (after, [2, 1, 4])] {
        let found = snapshot.run(|tx| {
            let found = [1, 2, 3].map(|code| by_code.read(tx, &code, Filed::NUMBER));
            Ok(found)
        });
        assert_eq!(found.unwrap(), wanted.map(Ok), "{}", P::NAME);
    }
}

/// The model of the unique index: which row has each key, and which rows wait for one, in order.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    rows: BTreeMap<u16, (u32, i64)>,
    owners: BTreeMap<u32, u16>,
    waiting: Vec<(u32, u16)>,
    effects: usize,
}

impl Model {
    /// Changes the code of a row from `old` to `new`.
    fn change(&mut self, number: u16, old: Option<u32>, new: Option<u32>) {
        if old == new {
            return;
        }
        let is_taken = new.is_some_and(|code| self.owners.contains_key(&code));
        if let Some(code) = old {
            let own = self.waiting.iter().position(|&wait| wait == (code, number));
            let next = self.waiting.iter().position(|wait| wait.0 == code);
            match (own, next) {
                (Some(own), _) => drop(self.waiting.remove(own)),
                (None, Some(next)) => {
                    let (_, next) = self.waiting.remove(next);
                    self.owners.insert(code, next);
                }
                (None, None) => drop(self.owners.remove(&code)),
            }
        }
        match new {
            Some(code) if is_taken => self.waiting.push((code, number)),
            Some(code) => drop(self.owners.insert(code, number)),
            None => {}
        }
    }

    fn put(&mut self, number: u16, code: u32) {
        let old = self.rows.insert(number, (code, 10));
        self.change(number, old.map(|(code, _)| code), Some(code));
    }
}

/// The end that a part, or the transaction, must have.
type End = Result<(), Abort>;

struct Play<'a, P: Protocol> {
    filed: &'a Table<Filed, P>,
    by_code: &'a Index<Filed, u32, Hashed, P>,
    random: Random,
    ran: std::rc::Rc<std::cell::Cell<usize>>,
}

impl<P: Protocol> Play<'_, P> {
    /// Plays random operations, and returns the result of the closure and the expected result of
    /// the part.
    fn play(&mut self, tx: &Tx<'_, P>, model: &mut Model, level: u32) -> (End, End) {
        let before = model.waiting.clone();
        for _ in 0..self.random.below(7) {
            if let Some(abort) = self.step(tx, model, level) {
                return (Ok(()), Err(abort));
            }
        }
        if self.random.below(3) == 0 {
            return (Err(Abort::Indexed), Err(Abort::Indexed));
        }
        let is_refused = model.waiting.iter().any(|wait| level == 0 || !before.contains(wait));
        (Ok(()), if is_refused { Err(Abort::NotUnique) } else { Ok(()) })
    }

    /// Plays one operation. Returns the outcome in which the part must end because of it, if the
    /// operation has succeeded nevertheless.
    fn step(&mut self, tx: &Tx<'_, P>, model: &mut Model, level: u32) -> Option<Abort> {
        let Play { filed, by_code, .. } = *self;
        let number = 1 + self.random.below(5) as u16;
        let (key, code) = ((1, number), self.random.below(6) as u32);
        let old = model.rows.get(&number).copied();
        match self.random.below(11) {
            0 | 1 => {
                let wanted = if old.is_some() { Err(Abort::Duplicate) } else { Ok(()) };
                assert_eq!(filed.insert(tx, row(number, code)), wanted);
                if old.is_none() {
                    model.put(number, code);
                }
            }
            2 => {
                filed.put(tx, row(number, code)).unwrap();
                model.put(number, code);
            }
            3 | 4 => {
                let wanted = if old.is_some() { Ok(()) } else { Err(Abort::NotFound) };
                assert_eq!(set_unique_key(filed, tx, number, code), wanted);
                if let Some((before, weight)) = old {
                    model.rows.insert(number, (code, weight));
                    model.change(number, Some(before), Some(code));
                }
            }
            5 => {
                assert_eq!(filed.delete_if_present(tx, &key), Ok(old.is_some()));
                if let Some((before, _)) = model.rows.remove(&number) {
                    model.change(number, Some(before), None);
                }
            }
            6 => {
                let update = Filed::WEIGHT.sub(4).at_least(0);
                assert_eq!(filed.update_if_present(tx, &key, update), Ok(old.is_some()));
                let (before, weight) = old?;
                if weight < 4 {
                    if self.random.below(2) == 0 {
                        assert_eq!(filed.get(tx, &key, Filed::WEIGHT), Err(Abort::Guard));
                    }
                    return Some(Abort::Guard);
                }
                model.rows.insert(number, (before, weight - 4));
            }
            7 => {
                let read = filed.get(tx, &key, (Filed::CODE, Filed::WEIGHT));
                assert_eq!(read, Ok(old));
            }
            8 => {
                let found = by_code.get(tx, &code, Filed::NUMBER);
                assert_eq!(found, Ok(model.owners.get(&code).copied()));
                let mut rows: Vec<_> = filed
                    .iter(tx, Filed::CODE)
                    .map(|row| row.map(|(key, code)| (key.1, code)).unwrap())
                    .collect();
                rows.sort();
                let wanted: Vec<_> =
                    model.rows.iter().map(|(&number, row)| (number, row.0)).collect();
                assert_eq!(rows, wanted);
            }
            _ if level < 3 => {
                let scan = filed.iter(tx, (Filed::CODE, Filed::WEIGHT));
                let (rows, mut after) = (model.rows.clone(), model.clone());
                let mut wanted = Ok(());
                let end = tx.attempt(|tx| {
                    let (end, must) = self.play(tx, &mut after, level + 1);
                    let ran = self.ran.clone();
                    tx.on_commit(move || ran.set(ran.get() + 1));
                    after.effects += 1;
                    wanted = must;
                    end
                });
                assert_eq!(end, wanted);
                if end.is_ok() {
                    *model = after;
                }
                let scanned = scan.map(|row| row.map(|(key, row)| (key.1, row)).unwrap());
                assert_eq!(scanned.collect::<BTreeMap<_, _>>(), rows);
            }
            _ => {}
        }
        None
    }
}

protocol_tests!(all: undone_parts_agree_with_copies_of_a_map);
/// Runs random operations on a table with a unique index, in parts within parts, and on a model
/// that is copied at the begin of each part.
fn undone_parts_agree_with_copies_of_a_map<P: Protocol>() {
    let mut committed = 0;
    for seed in 0..share(60) {
        let mut scene = scene::<P>();
        let mut model = Model::default();
        (1..=3).for_each(|number| model.put(number, number.into()));
        for round in 0..6 {
            let ran = std::rc::Rc::new(std::cell::Cell::new(0));
            let mut play = Play {
                filed: &scene.filed,
                by_code: &scene.by_code,
                random: Random::seeded(100 * seed + round),
                ran: ran.clone(),
            };
            let (mut wanted, mut after) = (Ok(()), model.clone());
            after.effects = 0;
            let end = scene.session.run(|tx| {
                let (end, must) = play.play(tx, &mut after, 0);
                wanted = must;
                end
            });
            assert_eq!(end, wanted, "{}: seed {seed}, round {round}", P::NAME);
            if end.is_ok() {
                assert_eq!(ran.get(), after.effects, "{}: seed {seed}", P::NAME);
                (model, committed) = (after, committed + 1);
            }
            let codes: Vec<_> = model.rows.iter().map(|(&number, row)| (number, row.0)).collect();
            scene.assert_codes(&codes);
        }
    }
    assert!(committed > 0, "{}", P::NAME);
}
