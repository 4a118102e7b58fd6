//! Tests of the reports of conflicts to programs.

use crate::common::{Item, Parcel};
use candide::report::Conflict;
use candide::{Abort, Database, Occ, RunOptions, TableOptions, Tx};
use std::cell::RefCell;

fn unwrap<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

#[test]
fn the_closure_is_told_why_its_last_attempt_failed() {
    let db = Database::new();
    let table = db.table::<Item>("rows").unwrap();
    unwrap(db.run(|tx| (0..2).try_for_each(|id| table.insert(tx, Item::new(id, 0)))));
    let mut session = db.session().unwrap();
    for _ in 0..2 {
        let mut seen = Vec::<Option<Conflict>>::new();
        unwrap(session.run(|tx| {
            seen.push(tx.last_conflict());
            // The attempt adapts: it locks the row that has changed.
            match tx.last_conflict() {
                Some(conflict) if conflict.key == Some(vec![0]) => {
                    _ = table.read_for_update(tx, 0, Item::COUNT)?;
                }
                _ => drop(table.read(tx, 0, Item::COUNT)?),
            }
            match tx.attempt_number() {
                1 => db.run(|tx| table.update(tx, 0, Item::COUNT.add(1)))?,
                2 => {
                    table.read(tx, 1, Item::COUNT)?;
                    db.run(|tx| table.update(tx, 1, Item::COUNT.add(1)))?;
                }
                _ => {}
            }
            // A conflict of this attempt does not yet replace the conflict of the attempt before.
            assert_eq!(tx.last_conflict(), *seen.last().unwrap());
            table.update(tx, 0, Item::OTHER.add(1))
        }));
        let keys: Vec<_> = seen
            .iter()
            .map(|seen| seen.as_ref().and_then(|conflict| conflict.key.clone()))
            .collect();
        assert_eq!(keys, [None, Some(vec![0]), Some(vec![1])]);
        // The session keeps the conflict; the next transaction begins without one.
        assert_eq!(session.last_conflict().unwrap().key, Some(vec![1]));
    }
    assert_eq!(db.run(|tx| Ok(tx.last_conflict())), Ok(None));
}

#[test]
fn a_conflict_names_the_key_in_ordered_and_hashed_tables() {
    for aware in [true, false] {
        let db = Database::new();
        let options = TableOptions::default().contention_aware_keys(aware);
        let parcels = db.table_with::<Parcel>("parcels", options).unwrap();
        unwrap(db.run(|tx| parcels.insert(tx, Parcel::new(3, 500))));
        let mut session = db.session().unwrap();
        let met = session.with(RunOptions::new().attempts_max(1)).run(|tx| {
            parcels.read(tx, &(3, 500), Parcel::NOTE)?;
            db.run(|tx| parcels.update(tx, &(3, 500), Parcel::NOTE.add(1)))?;
            parcels.update(tx, &(3, 500), Parcel::NOTE.add(1))
        });
        assert_eq!(met, Err(Abort::AttemptsExhausted));
        let conflict = session.last_conflict().unwrap();
        assert_eq!(
            (conflict.key, conflict.key_is_longer),
            (Some(vec![3, 500]), false),
            "aware {aware}"
        );
    }
}

#[test]
fn the_callback_is_called_for_every_conflict_before_the_run_fails() {
    for cached in [true, false] {
        let db = Database::new();
        let table = db.table::<Item>("rows").unwrap();
        unwrap(db.run(|tx| (0..3).try_for_each(|id| table.insert(tx, Item::new(id, 0)))));
        let (mut session, told) = (db.session().unwrap(), RefCell::new(Vec::new()));
        let tell = |conflict: &Conflict| {
            // During the callback no session is locked out. The callback is not part of the
            // transaction.
            let mut other = db.session().unwrap();
            unwrap(other.run(|tx| table.update(tx, 0, Item::COUNT.add(1))));
            let nested = db.run(|_| Ok(()));
            assert_eq!(nested, if cached { Err(Abort::Nested) } else { Ok(()) });
            told.borrow_mut().push(conflict.key.clone().unwrap());
        };
        let options = RunOptions::new().attempts_max(3).on_conflict(&tell);
        let mut other = db.session().unwrap();
        let mut attempts = 0;
        let mut body = |tx: &Tx<'_, Occ>| {
            // The callback has been called once for each earlier attempt.
            assert_eq!(told.borrow().len(), attempts);
            let id = attempts as u64;
            attempts += 1;
            table.read(tx, &id, Item::COUNT)?;
            other.run(|tx| table.update(tx, &id, Item::COUNT.add(1)))?;
            table.update(tx, &id, Item::OTHER.add(1))
        };
        let end = if cached {
            db.with(options).run(&mut body)
        } else {
            session.with(options).run(&mut body)
        };
        assert_eq!(end, Err(Abort::AttemptsExhausted));
        assert_eq!(told.take(), [[0], [1], [2]]);
        assert_eq!(unwrap(db.run(|tx| table.read(tx, 0, Item::COUNT))), 4);
        // Without a conflict the callback is not called.
        unwrap(db.with(options).run(|tx| table.update(tx, 1, Item::COUNT.add(1))));
        assert_eq!(told.take(), Vec::<Vec<u64>>::new());
    }
}
