//! Tests of unique indexes under contention.

use crate::common::{Random, Seat, ok, seat, share};
use candide::{Abort, Database, Error, IndexOptions, RunOptions};
use std::sync::atomic::{AtomicBool, Ordering};

/// Two rows with the same value are inserted while a unique index is built. Then either the index
/// or one of the rows must be refused.
#[test]
fn a_unique_index_under_construction_admits_no_duplicate() {
    let db = Database::new();
    let table = db.table::<Seat>("seats").unwrap();
    ok(db.run(|tx| table.insert_many(tx, (0..200).map(|id| seat(id / 40, id % 40, id)))));
    let stop = AtomicBool::new(false);
    let (mut made, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                let mut random = Random::seeded(thread);
                let mut session = db.session().unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let (number, owner) = (random.below(40), random.below(1_000));
                    let changed = session.run(|tx| {
                        table.put(tx, seat(9, number, owner))?;
                        table.delete_if_present(tx, &(9, (number + 20) % 40))?;
                        Ok(())
                    });
                    assert!(matches!(changed, Ok(()) | Err(Abort::NotUnique)), "{changed:?}");
                }
            });
        }
        let mut session = db.session().unwrap();
        for _ in 0..share(150) {
            match table.create_index("by_owner", Seat::OWNER, IndexOptions::ordered().unique()) {
                Ok(index) => {
                    let checked = session.with(RunOptions::new().attempts_max(3_000)).run(|tx| {
                        let indexed: Result<Vec<_>, _> = index.scan(tx, .., Seat::OWNER).collect();
                        let rows: Result<Vec<_>, _> = table.scan(tx, .., Seat::OWNER).collect();
                        let (indexed, mut rows) = (indexed?, rows?);
                        rows.sort_by_key(|row| row.1);
                        Ok(indexed == rows && rows.windows(2).all(|two| two[0].1 < two[1].1))
                    });
                    assert!(
                        checked == Ok(true) || checked == Err(Abort::AttemptsExhausted),
                        "{checked:?}"
                    );
                    table.drop_index("by_owner").unwrap();
                    made += 1;
                }
                Err(Error::NotUnique { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    eprintln!("made {made}, refused {refused}");
}
