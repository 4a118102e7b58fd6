//! Errors of parts of transactions that another transaction makes untrue.

use super::indexed_rows::{Filed, Parcel};
use super::transactions::{ONCE, run};
use super::unique_keys::{Act, set_unique_key};
use crate::engine::Protocol;
use crate::{Abort, Database, Whole};

/// A part that ends in an error, and a change after which it would end otherwise.
struct Case<P: Protocol> {
    part: Act<P>,
    error: Abort,
    remedy: Act<P>,
}

/// The row that shows whether a transaction comes before the remedy or after it.
const WITNESS: (u8, u16) = (1, 5);

fn row(number: u16, code: u32) -> Filed {
    Parcel { code, ..Parcel::new(1, number) }.into()
}

/// Returns cases for a table of the rows 1 to 6, whose codes are their numbers.
fn cases<P: Protocol>() -> Vec<Case<P>> {
    vec![
        Case {
            part: |filed, tx| filed.insert(tx, row(9, 1)),
            error: Abort::NotUnique,
            remedy: |filed, tx| set_unique_key(filed, tx, 1, 20),
        },
        Case {
            part: |filed, tx| set_unique_key(filed, tx, 1, 2),
            error: Abort::NotUnique,
            remedy: |filed, tx| filed.delete(tx, (1, 2)),
        },
        Case {
            // The waiting row is a row already.
            part: |filed, tx| filed.insert(tx, row(9, 1)),
            error: Abort::NotUnique,
            remedy: |filed, tx| filed.insert(tx, row(9, 9)),
        },
        Case {
            // The row that waits for a key gets it, and another one waits.
            part: |filed, tx| {
                set_unique_key(filed, tx, 1, 3)?;
                set_unique_key(filed, tx, 2, 3)?;
                set_unique_key(filed, tx, 3, 4)?;
                set_unique_key(filed, tx, 1, 10)
            },
            error: Abort::NotUnique,
            remedy: |filed, tx| set_unique_key(filed, tx, 4, 20),
        },
        Case {
            part: |filed, tx| filed.update(tx, (1, 3), Filed::WEIGHT.sub(11).at_least(0)),
            error: Abort::Guard,
            remedy: |filed, tx| filed.update(tx, (1, 3), Filed::WEIGHT.add(1)),
        },
        Case {
            part: |filed, tx| {
                filed.update(tx, (1, 3), Filed::WEIGHT.sub(11).at_least(0))?;
                filed.get(tx, (1, 3), Whole).map(drop)
            },
            error: Abort::Guard,
            remedy: |filed, tx| filed.update(tx, (1, 3), Filed::WEIGHT.add(1)),
        },
        Case {
            part: |filed, tx| filed.insert(tx, row(3, 30)),
            error: Abort::Duplicate,
            remedy: |filed, tx| filed.delete(tx, (1, 3)),
        },
        Case {
            part: |filed, tx| filed.update(tx, (1, 9), Filed::NOTE.add(1)),
            error: Abort::NotFound,
            remedy: |filed, tx| filed.insert(tx, row(9, 9)),
        },
        Case {
            // The part contains a part that has assumed something and has succeeded.
            part: |filed, tx| {
                tx.attempt(|tx| filed.insert(tx, row(9, 9)))?;
                Err(Abort::Indexed)
            },
            error: Abort::Indexed,
            remedy: |filed, tx| filed.insert(tx, row(9, 90)),
        },
        Case {
            // The part contains a part that has assumed something and has been undone.
            part: |filed, tx| {
                let undone = tx.attempt(|tx| {
                    filed.update(tx, (1, 3), Filed::NOTE.add(1))?;
                    Err::<(), _>(Abort::Overflow)
                });
                undone.or(Err(Abort::Indexed))
            },
            error: Abort::Indexed,
            remedy: |filed, tx| filed.delete(tx, (1, 3)),
        },
        Case {
            // The inserted row is deleted again.
            part: |filed, tx| {
                filed.insert(tx, row(9, 9))?;
                filed.delete(tx, (1, 9))?;
                Err(Abort::Indexed)
            },
            error: Abort::Indexed,
            remedy: |filed, tx| filed.insert(tx, row(9, 90)),
        },
        Case {
            part: |filed, tx| {
                set_unique_key(filed, tx, 1, 2)?;
                set_unique_key(filed, tx, 2, 1)?;
                filed.delete(tx, (1, 3))?;
                Err(Abort::Indexed)
            },
            error: Abort::Indexed,
            remedy: |filed, tx| filed.delete(tx, (1, 3)),
        },
    ]
}

protocol_tests!(overlapping: an_error_of_a_part_is_right_at_the_time_of_the_transaction);
/// Another transaction makes the error of a part untrue, and writes a row that the first
/// transaction reads afterwards. If the first one sees that, it comes after the other, and must not
/// have seen the error.
fn an_error_of_a_part_is_right_at_the_time_of_the_transaction<P: Protocol>() {
    let mut committed = 0;
    for (number, Case { part, error, remedy }) in cases::<P>().into_iter().enumerate() {
        for writes in [false, true] {
            let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
            let filed = db.table::<Filed>("filed").unwrap();
            let (mut session, mut other) = (db.session().unwrap(), db.session().unwrap());
            let rows = (1..=6).map(|number| row(number, number.into()));
            run(&mut session, |tx| filed.insert_many(tx, rows.clone()));
            let mut remedied = Ok(());
            let seen = session.with(ONCE()).run(|tx| {
                assert_eq!(tx.attempt(|tx| part(&filed, tx)), Err(error), "{}: {number}", P::NAME);
                remedied = other.with(ONCE()).run(|tx| {
                    remedy(&filed, tx)?;
                    filed.update(tx, WITNESS, Filed::NOTE.set(1))
                });
                let seen = filed.read(tx, WITNESS, Filed::NOTE)?;
                if writes {
                    filed.update(tx, (1, 6), Filed::NOTE.set(1))?;
                }
                Ok(seen)
            });
            assert!(seen != Ok(1), "{}: case {number}, {remedied:?}", P::NAME);
            committed += u32::from(seen.is_ok()) + u32::from(remedied.is_ok());
            super::entries::assert_entries_match_rows(&mut session, &filed);
        }
    }
    assert!(committed > 0, "{}", P::NAME);
}
