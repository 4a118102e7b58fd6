//! Transactions of several threads on few rows, whose changes recovery must repeat in their order.

use super::{contents, options};
use crate::common::{Item, Random, builder, properties, share};
use candide::{Abort, Pending, Protocol};
use candide_log::disk::SimDisk;
use std::sync::Arc;
use std::time::Duration;

protocol_tests!(all: changes_of_many_threads_are_repeated_in_their_order);

/// Rows are deleted and inserted again, so that records are removed from their tables meanwhile.
fn changes_of_many_threads_are_repeated_in_their_order<P: Protocol>() {
    let disk = SimDisk::new();
    let open = |splitting| {
        let builder = builder::<P>().timestamp_splitting(splitting);
        let options = options().flush_every(Duration::ZERO);
        let db = builder.open_on(Arc::new(disk.clone()), options).unwrap();
        let items = db.table::<Item>("items").unwrap();
        (db, items)
    };
    let threads = if properties::<P>().one_session { 1 } else { 4 };
    for seed in 0..share(6) {
        let (db, items) = open(seed % 3 > 0);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (db, items) = (&db, &items);
                scope.spawn(move || {
                    let mut session = (threads > 1).then(|| db.session().unwrap());
                    let mut last: Option<Pending<()>> = None;
                    for step in 0..share(300) {
                        let body = |tx: &candide::Tx<'_, P>| {
                            let random = &mut Random::seeded(seed << 32 | thread << 16 | step);
                            for _ in 0..1 + random.below(4) {
                                let (id, value) = (random.below(4), random.below(50));
                                let changed = match random.below(8) {
                                    0 | 1 => items.insert(tx, Item::new(id, value as i64)),
                                    2 | 3 => items.delete(tx, &id),
                                    4 => items.update(tx, &id, Item::OTHER.set(value)),
                                    5 => items.put(tx, Item::new(id, value as i64)),
                                    _ => items.update(tx, &id, Item::COUNT.add(value as i64)),
                                };
                                match changed {
                                    Err(Abort::NotFound | Abort::Duplicate) => {}
                                    other => other?,
                                }
                            }
                            Ok::<(), Abort>(())
                        };
                        let pending = match &mut session {
                            Some(session) => session.run_logged(body),
                            None => db.run_logged(body),
                        };
                        if step % 40 == 7 {
                            let _ = last.take().map(Pending::wait);
                        }
                        assert_eq!(pending.peek(), Ok(&()));
                        last = Some(pending);
                    }
                });
            }
            if seed % 2 == 1 {
                db.checkpoint().unwrap();
            }
        });
        assert!(db.log_failure().is_none(), "{:?}", db.log_failure());
        let before = contents(&items);
        drop((db, items));
        let (_db, items) = open(seed % 2 == 0);
        assert_eq!(contents(&items), before, "seed {seed}");
    }
}
