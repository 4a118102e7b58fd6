//! Whole transactions under random schedules (`--cfg shuttle`), each history checked.

use super::rows::Item;
use crate::protocol::{Occ, Protocol};
use crate::sync::{Random, thread};
use crate::{Abort, Database};
use std::sync::Arc;

/// Threads that move one unit between rows, delete and insert rows, and add all up: the sum stays.
fn scene<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    db.session()
        .unwrap()
        .run(|tx| (0..3).try_for_each(|id| table.insert(tx, Item::new(id, 10))))
        .unwrap_or_else(|e: Abort| panic!("{e}"));
    let sum = Arc::new(move |session: &mut crate::Session<P>, table: &crate::Table<Item, P>| {
        let sum = session.run(|tx| {
            let mut sum = 0;
            for id in 0..3 {
                sum += table.get(tx, &id, Item::COUNT)?.unwrap_or(0);
            }
            Ok::<_, Abort>(sum)
        });
        assert_eq!(sum, Ok(30));
    });
    let threads: Vec<_> = (0..3u64)
        .map(|number| {
            let (db, table, sum) = (db.clone(), table.clone(), sum.clone());
            thread::spawn(move || {
                let mut session = db.session().unwrap();
                let mut random = Random::seeded(number);
                for _ in 0..3 {
                    let (from, to) = (random.below(3), random.below(3));
                    session
                        .run(|tx| {
                            // All of one row to another, which may have to be made.
                            let held = number == 0;
                            let get = |id| {
                                let row = table.find(tx, id)?;
                                if held { row.get_for_update(Item::COUNT) } else { row.get(Item::COUNT) }
                            };
                            let Some(count) = get(&from)? else { return Ok(()) };
                            table.delete(tx, &from)?;
                            match get(&to)? {
                                Some(_) => table.update(tx, &to, Item::COUNT.add(count)),
                                None => table.insert(tx, Item::new(to, count)),
                            }
                        })
                        .unwrap_or_else(|e: Abort| panic!("{e}"));
                    db.inner.engine.epochs.pass();
                }
                sum(&mut session, &table);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    sum(&mut db.session().unwrap(), &table);
}

#[test]
fn shuttle_random_schedules_keep_the_sum() {
    shuttle::check_random(scene::<Occ>, 2_000);
}

#[test]
fn shuttle_pct_schedules_keep_the_sum() {
    shuttle::check_pct(scene::<Occ>, 1_000, 3);
}
