//! The scenes: rows, nodes, memory and sessions that come and go.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::Protocol;
use crate::{Abort, Whole};

/// What an item's count is where a scene asks whose memory it is that is read.
fn count_of(key: u64) -> i64 {
    1_000 + key as i64
}

/// Inserts items whose counts are of their keys.
fn insert<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    me.run(|tx| items.insert_if_absent(tx, Item::new(key, count_of(key))));
}

fn delete<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    me.run(|tx| items.delete_if_present(tx, &key));
}

/// Reads a row twice by one handle while an epoch passes, and notes beside what it saw.
fn look_twice<P: Protocol>(me: &mut Actor<'_, P>, key: u64, note: u64) {
    let (items, stage, mut other) = (me.items(), me.stage, None);
    let seen = me.run(|tx| {
        let row = items.find(tx, &key)?;
        let first = row.get(Whole)?;
        stage.pass();
        let seen = [first, row.get(Whole)?];
        // Asked of attempts that are going to fail, too: they may see the row of another time, not
        // another row.
        other = seen.into_iter().flatten().find(|row| row.count != count_of(key)).or(other);
        items.put(tx, Item::new(note, seen.iter().flatten().count() as i64))?;
        Ok(seen)
    });
    assert_eq!(other, None, "the memory of another row");
    assert_eq!(seen[0], seen[1], "one transaction, two states");
}

/// Rows are deleted and reaped, and others are made where they were, while their keys are looked
/// for.
pub(super) fn reuse<P: Protocol>() -> Scene<P> {
    Scene::new("reuse")
        .before(|me| (0..3).for_each(|key| insert(me, key)))
        .part(|me| {
            for key in 0..3 {
                me.remember_place(key);
                delete(me, key);
                (0..2).for_each(|_| me.pass());
                // A key that was never there: if its record is where one was, it is not because the
                // tombstone was taken over.
                insert(me, 10 + key);
                me.remember_place(10 + key);
            }
        })
        .part(|me| {
            look_twice(me, 0, 20);
            look_twice(me, 1, 20);
            look_twice(me, 10, 20);
        })
        .part(|me| {
            delete(me, 1);
            (0..2).for_each(|_| me.pass());
            insert(me, 1);
            look_twice(me, 2, 21);
        })
        .shows("burial")
        .shows("memory used again")
}

/// A tombstone is reaped and another row made where it was, beside one reader and nothing
/// else.
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
                let row = items.find(tx, &0)?;
                let first = row.get(Whole)?;
                (0..3).try_for_each(|_| items.get(tx, &1, ()).map(drop))?;
                // Asked of attempts that are going to fail, too: they may see the row of another
                // time, not another row.
                other = first.or(row.get(Whole)?).filter(|row| row.count != count_of(0)).or(other);
                Ok(())
            });
            assert_eq!(other, None, "the memory of another row");
        })
        .shows("burial")
}

/// A key is deleted and made again and again, by two threads, while epochs pass: the new row is
/// never older than the old one.
pub(super) fn reinsert<P: Protocol>() -> Scene<P> {
    fn turn<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            me.run(|tx| {
                // Each turn is one more than what the last one has noted beside.
                let turns = items.read(tx, &1, Item::COUNT)?;
                if !items.delete_if_present(tx, &0)? {
                    items.insert(tx, Item::new(0, turns + 1))?;
                }
                items.update(tx, &1, Item::COUNT.set(turns + 1))
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
                    Ok((items.get(tx, &0, Item::COUNT)?, items.read(tx, &1, Item::COUNT)?))
                });
                // Turns insert and delete alternately.
                assert_eq!(row, (turns % 2 == 1).then_some(turns));
                me.pass();
            }
        })
        .after(|me| {
            let items = me.items();
            let turns = me.run(|tx| items.read(tx, &1, Item::COUNT));
            assert_eq!(turns, 4);
        })
        .shows("burial")
}

/// A tombstone that is still linked is taken over by an insert while another transaction deletes,
/// one reads, and the record may be reaped.
pub(super) fn take_over<P: Protocol>() -> Scene<P> {
    Scene::new("take-over")
        .before(|me| {
            me.fill(0..2, 0);
            delete(me, 0);
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                let noted = items.read(tx, &1, Item::COUNT)?;
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
                let seen = items.get(tx, &0, Item::COUNT)?.unwrap_or(0);
                items.update(tx, &1, Item::COUNT.set(seen + 1))
            });
            let other = me.run(|tx| items.get(tx, &0, Item::OTHER));
            assert!(other.is_none_or(|other| other == 100), "{other:?}");
        })
        .after(|me| {
            let items = me.items();
            let rows = me
                .run(|tx| Ok((items.get(tx, &0, Item::COUNT)?, items.read(tx, &1, Item::COUNT)?)));
            // The last two would each have come before the other.
            assert!(!matches!(rows, (Some(2), 2)), "{rows:?}");
        })
        .shows("burial")
}

/// Keys that were looked for in vain come to be while the index grows around them.
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

/// Rows 0 to 3, of which the first has been written often, and the second read by a transaction
/// that began after that.
fn with_a_past<P: Protocol>(me: &mut Actor<'_, P>) {
    me.fill(0..4, 0);
    let items = me.items();
    (0..3).for_each(|_| me.run(|tx| items.update(tx, &0, Item::COUNT.add(1))));
    me.run(|tx| {
        items.read(tx, &1, Item::COUNT)?;
        items.update(tx, &0, Item::COUNT.add(1))
    });
}

/// Notes in the second row that a key is not there, after all that was written to the first.
fn miss<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    me.run(|tx| {
        let writes = items.read(tx, &0, Item::COUNT)?;
        match items.get(tx, &key, ())? {
            None => items.update(tx, &1, Item::COUNT.set(writes)),
            Some(()) => Ok(()),
        }
    });
}

/// Looks at the second row, and after a while for a key.
fn look_for<P: Protocol>(me: &mut Actor<'_, P>, key: u64) {
    let items = me.items();
    let found = me.run(|tx| {
        items.read(tx, &1, Item::COUNT)?;
        (0..4).try_for_each(|_| items.read(tx, &3, Item::COUNT).map(drop))?;
        items.get(tx, &key, Item::COUNT)
    });
    me.saw(if found.is_some() { "found" } else { "missed" });
}

/// A key that was missed comes to a node that was made since.
pub(super) fn inheritance<P: Protocol>() -> Scene<P> {
    Scene::new("inheritance")
        .before(with_a_past)
        .part(|me| {
            miss(me, 100);
            let items = me.items();
            me.run(|tx| items.insert_many(tx, (90..97).map(|key| Item::new(key, 0))));
            insert(me, 100);
        })
        .part(|me| look_for(me, 100))
        .shows("found")
        .shows("missed")
}

/// What is held is read by another transaction before it is written.
pub(super) fn held_meanwhile<P: Protocol>() -> Scene<P> {
    Scene::new("held-meanwhile")
        .before(with_a_past)
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                items.read_for_update(tx, &2, Item::COUNT)?;
                (0..4).try_for_each(|_| items.read(tx, &3, Item::COUNT).map(drop))?;
                items.update(tx, &2, Item::COUNT.set(1))
            });
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| {
                let writes = items.read(tx, &0, Item::COUNT)?;
                let held = items.read(tx, &2, Item::COUNT)?;
                items.update(tx, &1, Item::COUNT.set(writes + held))
            });
        })
        .part(|me| look_for(me, 2))
}

/// A key whose record was found, without a row, comes again when that is gone.
pub(super) fn bequest<P: Protocol>() -> Scene<P> {
    Scene::new("bequest")
        .before(|me| {
            with_a_past(me);
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
        .part(|me| look_for(me, 100))
        .shows("found")
        .shows("missed")
}

/// A row was deleted and made again, and is deleted by another session while its record is still in
/// a queue.
pub(super) fn requeue<P: Protocol>() -> Scene<P> {
    fn take<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        me.run(|tx| {
            let Some(count) = items.get(tx, &0, Item::COUNT)? else { return Ok(()) };
            items.delete(tx, &0)?;
            items.update(tx, &1, Item::COUNT.add(count))
        });
    }
    fn sum<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let counts =
            me.run(|tx| Ok([items.get(tx, &0, Item::COUNT)?, items.get(tx, &1, Item::COUNT)?]));
        assert_eq!(counts.iter().flatten().sum::<i64>(), 20, "{counts:?}");
    }
    Scene::peaceful("requeue")
        .before(|me| {
            me.fill(0..2, 10);
            take(me);
            let items = me.items();
            me.run(|tx| {
                items.update(tx, &1, Item::COUNT.sub(5))?;
                items.insert(tx, Item::new(0, 5))
            });
            (0..2).for_each(|_| me.pass());
        })
        .part(take)
        .part(|me| (0..2).for_each(|_| me.advance()))
        .part(|me| (0..2).for_each(|_| sum(me)))
}

/// Sessions that have left garbage are dropped while the advancer and others go about their
/// business.
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
            look_twice(me, 1, 20);
            let items = me.items();
            let refused = me.session.run(|tx| {
                items.insert_if_absent(tx, Item::new(5, 0))?;
                items.put(tx, Item::new(0, count_of(0)))?;
                Err::<(), _>(Abort::NotFound)
            });
            assert_eq!(refused, Err(Abort::NotFound));
            me.session = me.stage.db.session().unwrap();
            look_twice(me, 0, 20);
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
