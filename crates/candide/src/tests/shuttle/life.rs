//! Scenes in which rows, nodes, memory and sessions come and go.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::Protocol;
use crate::{Abort, Whole};

/// Returns the count of the item with this key, in scenes that check by the count whose record a
/// reader has read.
fn count_of(key: u64) -> i64 {
    1_000 + key as i64
}

/// Inserts an item whose count follows from its key.
fn insert<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    me.run(|tx| items.insert_if_absent(tx, Item::new(key, count_of(key))));
}

fn delete<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    me.run(|tx| items.delete_if_present(tx, &key));
}

/// Reads row `key` twice by one handle, while an epoch passes. Writes the number of rows that it
/// saw to row `note`.
fn read_twice_by_handle<P: Protocol>(me: &mut Actor<'_, P>, key: u64, note: u64) {
    let (items, stage, mut other) = (me.items(), me.stage, None);
    let seen = me.run(|tx| {
        let row = items.find(tx, &key)?;
        let first = row.get(Whole)?;
        stage.pass();
        let seen = [first, row.get(Whole)?];
        // The check includes attempts that are going to fail: they may see the row as it was at
        // another time, but never another row.
        other = seen.into_iter().flatten().find(|row| row.count != count_of(key)).or(other);
        items.put(tx, Item::new(note, seen.iter().flatten().count() as i64))?;
        Ok(seen)
    });
    assert_eq!(other, None, "the memory of another row");
    assert_eq!(seen[0], seen[1], "one transaction, two states");
}

/// Rows are deleted and their records are removed. Other rows are made in the same memory, while
/// readers look up the deleted keys.
pub(super) fn reuse<P: Protocol>() -> Scene<P> {
    Scene::new("reuse")
        .before(|me| (0..3).for_each(|key| insert(me, key)))
        .part(|me| {
            for key in 0..3 {
                me.remember_place(key);
                delete(me, key);
                (0..2).for_each(|_| me.pass());
                // A key that never had a record. So if its record is where another record was, the
                // insert has not taken over a deleted row's record.
                insert(me, 10 + key);
                me.remember_place(10 + key);
            }
        })
        .part(|me| {
            read_twice_by_handle(me, 0, 20);
            read_twice_by_handle(me, 1, 20);
            read_twice_by_handle(me, 10, 20);
        })
        .part(|me| {
            delete(me, 1);
            (0..2).for_each(|_| me.pass());
            insert(me, 1);
            read_twice_by_handle(me, 2, 21);
        })
        .shows("burial")
        .shows("memory used again")
}

/// The record of a deleted row is removed, and another row is made in its memory, while one reader
/// runs.
pub(super) fn stale_handle<P: Protocol>() -> Scene<P> {
    Scene::peaceful("stale-handle")
        .before(|me| {
            (0..2).for_each(|key| insert(me, key));
            delete(me, 0);
            (0..2).for_each(|_| me.pass());
        })
        .part(|me| {
            me.collect();
            me.advance();
            insert(me, 10);
        })
        .part(|me| {
            let (items, mut other) = (me.items(), None);
            me.run(|tx| {
                let row = items.find(tx, 0)?;
                let first = row.get(Whole)?;
                (0..3).try_for_each(|_| items.get(tx, 1, ()).map(drop))?;
                // The check includes attempts that are going to fail: they may see the row as it
                // was at another time, but never another row.
                other = first.or(row.get(Whole)?).filter(|row| row.count != count_of(0)).or(other);
                Ok(())
            });
            assert_eq!(other, None, "the memory of another row");
        })
        .shows("burial")
}

/// Two threads delete a key and insert it again, several times, while epochs pass. A new row never
/// has an older version than the row before.
pub(super) fn reinsert<P: Protocol>() -> Scene<P> {
    fn turn<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            me.run(|tx| {
                // The number of a turn is one more than the number that the last turn has written
                // to row 1.
                let turns = items.read(tx, 1, Item::COUNT)?;
                if !items.delete_if_present(tx, 0)? {
                    items.insert(tx, Item::new(0, turns + 1))?;
                }
                items.update(tx, 1, Item::COUNT.set(turns + 1))
            });
            me.advance();
        }
    }
    Scene::new("reinsert")
        .before(|me| me.fill(1..2, 0))
        .part(turn)
        .part(turn)
        .part(|me| {
            let items = me.items();
            for _ in 0..2 {
                let (row, turns) = me.run(|tx| {
                    Ok((items.get(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?))
                });
                // Turns insert and delete alternately.
                assert_eq!(row, (turns % 2 == 1).then_some(turns));
                me.pass();
            }
        })
        .after(|me| {
            let items = me.items();
            let turns = me.run(|tx| items.read(tx, 1, Item::COUNT));
            assert_eq!(turns, 4);
        })
        .shows("burial")
}

/// An insert takes over the linked record of a deleted row. Meanwhile another transaction deletes,
/// a third one reads, and the record may be removed.
pub(super) fn take_over<P: Protocol>() -> Scene<P> {
    Scene::new("take-over")
        .before(|me| {
            me.fill(0..2, 0);
            delete(me, 0);
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                let noted = items.read(tx, 1, Item::COUNT)?;
                items.put(tx, Item::new(0, noted + 1))
            });
        })
        .part(|me| {
            (0..2).for_each(|_| me.advance());
            delete(me, 0);
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                let seen = items.get(tx, 0, Item::COUNT)?.unwrap_or(0);
                items.update(tx, 1, Item::COUNT.set(seen + 1))
            });
            let other = me.run(|tx| items.get(tx, 0, Item::OTHER));
            assert!(other.is_none_or(|other| other == 100), "{other:?}");
        })
        .after(|me| {
            let items = me.items();
            let rows =
                me.run(|tx| Ok((items.get(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?)));
            // If this were so, each of the last two transactions would have come before the other.
            assert!(!matches!(rows, (Some(2), 2)), "{rows:?}");
        })
        .shows("burial")
}

/// Keys that a transaction has found absent are inserted, while the index grows.
pub(super) fn growth<P: Protocol>() -> Scene<P> {
    fn insert_unless<P: Protocol>(me: &mut Actor<'_, P>, other: u64, own: u64) {
        let items = me.items();
        me.run(|tx| match items.get(tx, &other, ())? {
            None => items.insert(tx, Item::new(own, 0)),
            Some(()) => Ok(()),
        });
    }
    Scene::new("growth")
        .before(|me| me.fill(0..3, 0))
        .part(|me| insert_unless(me, 100, 101))
        .part(|me| insert_unless(me, 101, 100))
        .part(|me| {
            me.fill(3..9, 0);
            let items = me.items();
            me.run(|tx| items.insert_many(tx, (200..206).map(|key| Item::new(key, 0))));
        })
        .after(|me| {
            let items = me.items();
            let rows = me.run(|tx| {
                let found = [100, 101].map(|key| items.get(tx, &key, ()));
                let rows = items.iter(tx, ()).try_fold(0, |rows, row| row.map(|_| rows + 1))?;
                assert!(
                    found[0].is_ok_and(|row| row.is_some())
                        != found[1].is_ok_and(|row| row.is_some())
                );
                Ok(rows)
            });
            assert_eq!(rows, 16);
        })
}

/// Makes rows 0 to 3. Row 0 has been written often, and a transaction that began after these writes
/// has read row 1.
fn fill_with_old_writes<P: Protocol>(me: &mut Actor<'_, P>) {
    me.fill(0..4, 0);
    let items = me.items();
    (0..3).for_each(|_| me.run(|tx| items.update(tx, 0, Item::COUNT.add(1))));
    me.run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        items.update(tx, 0, Item::COUNT.add(1))
    });
}

/// Reads row 0 and then finds `key` absent. If it is absent, writes the value of row 0 to row 1.
fn miss<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    me.run(|tx| {
        let writes = items.read(tx, 0, Item::COUNT)?;
        match items.get(tx, &key, ())? {
            None => items.update(tx, 1, Item::COUNT.set(writes)),
            Some(()) => Ok(()),
        }
    });
}

/// Reads row 1, and after a few other reads looks up `key`.
fn read_and_look_up<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    let found = me.run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        (0..4).try_for_each(|_| items.read(tx, 3, Item::COUNT).map(drop))?;
        items.get(tx, &key, Item::COUNT)
    });
    me.saw(if found.is_some() { "found" } else { "missed" });
}

/// A key that a transaction has found absent is inserted into a node that was made afterwards.
pub(super) fn inheritance<P: Protocol>() -> Scene<P> {
    Scene::new("inheritance")
        .before(fill_with_old_writes)
        .part(|me| {
            miss(me, 100);
            let items = me.items();
            me.run(|tx| items.insert_many(tx, (90..97).map(|key| Item::new(key, 0))));
            insert(me, 100);
        })
        .part(|me| read_and_look_up(me, 100))
        .shows("found")
        .shows("missed")
}

/// Another transaction reads a held row before the holder writes it.
pub(super) fn held_meanwhile<P: Protocol>() -> Scene<P> {
    Scene::new("held-meanwhile")
        .before(fill_with_old_writes)
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                items.read_for_update(tx, 2, Item::COUNT)?;
                (0..4).try_for_each(|_| items.read(tx, 3, Item::COUNT).map(drop))?;
                items.update(tx, 2, Item::COUNT.set(1))
            });
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                let writes = items.read(tx, 0, Item::COUNT)?;
                let held = items.read(tx, 2, Item::COUNT)?;
                items.update(tx, 1, Item::COUNT.set(writes + held))
            });
        })
        .part(|me| read_and_look_up(me, 2))
}

/// A transaction finds the record of an absent key. The record is removed, and then the key is
/// inserted again.
pub(super) fn bequest<P: Protocol>() -> Scene<P> {
    Scene::new("bequest")
        .before(|me| {
            fill_with_old_writes(me);
            let items = me.items();
            let refused = me.session.run(|tx| {
                items.insert(tx, Item::new(100, 0))?;
                Err::<(), _>(Abort::NotFound)
            });
            assert_eq!(refused, Err(Abort::NotFound));
            (0..2).for_each(|_| me.pass());
        })
        .part(|me| {
            miss(me, 100);
            me.advance();
            insert(me, 100);
        })
        .part(|me| read_and_look_up(me, 100))
        .shows("found")
        .shows("missed")
}

/// A row was deleted and inserted again. Another session deletes it while its record is still in
/// the first session's queue.
pub(super) fn requeue<P: Protocol>() -> Scene<P> {
    fn take<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        me.run(|tx| {
            let Some(count) = items.get(tx, 0, Item::COUNT)? else { return Ok(()) };
            items.delete(tx, 0)?;
            items.update(tx, 1, Item::COUNT.add(count))
        });
    }
    fn sum<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let counts =
            me.run(|tx| Ok([items.get(tx, 0, Item::COUNT)?, items.get(tx, 1, Item::COUNT)?]));
        assert_eq!(counts.iter().flatten().sum::<i64>(), 20, "{counts:?}");
    }
    Scene::peaceful("requeue")
        .before(|me| {
            me.fill(0..2, 10);
            take(me);
            let items = me.items();
            me.run(|tx| {
                items.update(tx, 1, Item::COUNT.sub(5))?;
                items.insert(tx, Item::new(0, 5))
            });
            (0..2).for_each(|_| me.pass());
        })
        .part(take)
        .part(|me| (0..2).for_each(|_| me.advance()))
        .part(|me| (0..2).for_each(|_| sum(me)))
}

/// Sessions that have garbage are dropped, while the advancer and other sessions continue to work.
pub(super) fn session_drop<P: Protocol>() -> Scene<P> {
    Scene::new("session-drop")
        .before(|me| (0..4).for_each(|key| insert(me, key)))
        .part(|me| {
            for key in 0..2 {
                delete(me, key);
                me.session = me.stage.db.session().unwrap();
            }
            insert(me, 0);
        })
        .part(|me| (0..4).for_each(|_| me.advance()))
        .part(|me| {
            read_twice_by_handle(me, 1, 20);
            let items = me.items();
            let refused = me.session.run(|tx| {
                items.insert_if_absent(tx, Item::new(5, 0))?;
                items.put(tx, Item::new(0, count_of(0)))?;
                Err::<(), _>(Abort::NotFound)
            });
            assert_eq!(refused, Err(Abort::NotFound));
            me.session = me.stage.db.session().unwrap();
            read_twice_by_handle(me, 0, 20);
        })
        .after(|me| {
            (0..4).for_each(|_| me.advance());
            me.stage.pass();
            assert_eq!(me.stage.db.memory().garbage, 0, "no transaction runs, but garbage is kept");
            let items = me.items();
            let mut keys: Vec<u64> =
                me.run(|tx| items.iter(tx, ()).map(|row| row.map(|(key, ())| key)).collect());
            keys.sort_unstable();
            assert_eq!(keys, [0, 2, 3, 20]);
        })
        .shows("burial")
}
