//! Values that many threads read, replace and delete.

use super::{Ledger, table};
use crate::engine::Protocol;
use crate::sync::Random;
use crate::tests::rows::Item;
use crate::tests::threads::spawn;
use crate::{Abort, Database};
use std::sync::Arc;

protocol_tests!(concurrent: each_value_is_dropped_once_whatever_threads_do);
fn each_value_is_dropped_once_whatever_threads_do<P: Protocol>() {
    const ROUNDS: usize = if cfg!(sanitized) { 300 } else { 1_500 };
    let db = Arc::new(Database::<P>::builder().build().unwrap());
    let (values, ledger) = (table(&db), Ledger::default());
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, values, items, ledger) = (&db, &values, &items, &ledger);
            spawn(scope, move || {
                let mut random = Random::seeded(thread);
                let mut session = (thread % 2 == 0).then(|| db.session().unwrap());
                for round in 0..ROUNDS {
                    let what = random.below(8);
                    let (key, other) = (random.below(6), random.below(6));
                    let weak = Arc::downgrade(db);
                    let runs = round % 16 == 0;
                    let probe = || {
                        let weak = weak.clone();
                        match runs {
                            false => ledger.probe(),
                            true => ledger.probe_with(move || {
                                if let Some(db) = weak.upgrade() {
                                    let _ = db.run(|_| Ok(()));
                                }
                            }),
                        }
                    };
                    let body = &mut |tx: &crate::Tx<'_, P>| -> Result<(), Abort> {
                        let before = values.get(tx, other)?;
                        match what {
                            0 => values.delete_if_present(tx, key).map(drop)?,
                            1 => drop(values.insert_if_absent(tx, key, probe())?),
                            2 => {
                                let _ = tx.attempt(|_| {
                                    values.put(tx, key, probe())?;
                                    Err::<(), _>(Abort::Guard)
                                });
                            }
                            3 if values.get(tx, key)?.is_some() => {
                                values.replace_with(tx, key, |old| {
                                    old.number();
                                    probe()
                                })?;
                            }
                            4 => {
                                values.put(tx, key, probe())?;
                                items.update(tx, 1, Item::COUNT.sub(1).at_least(0))?;
                            }
                            5 => {
                                values.delete_if_present(tx, key)?;
                                values.put(tx, key, probe())?;
                            }
                            _ => values.put(tx, key, probe())?,
                        }
                        for row in values.scan(tx, ..) {
                            row?.1.number();
                        }
                        if let Some(before) = before {
                            before.number();
                        }
                        Ok(())
                    };
                    let ended = match &mut session {
                        Some(session) => session.run(body),
                        None => db.run(body),
                    };
                    assert!(matches!(ended, Ok(()) | Err(Abort::Guard)), "{ended:?}");
                }
            });
        }
    });
    assert!(ledger.alive().len() < ledger.made());
    super::settle(&db, &values, &ledger);
    drop((db, values, items));
    assert_eq!(ledger.alive().len(), 0);
}
