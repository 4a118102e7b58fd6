//! Scenes of reads of older versions, for protocols that keep versions.

use super::super::indexed_rows::Parcel;
use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::{Protocol, Versioned, Versions};
use crate::index::Found;
use crate::protocols::Recorded;
use crate::{Abort, Snapshot, Whole};

/// The number of rows in the scenes of this file.
const ROWS: u64 = 3;

/// Moves the whole count of row `from` to row `to`, which is inserted if it does not exist, and
/// deletes row `from`. The sum stays the same.
fn move_all<P: Protocol>(me: &mut Actor<'_, P>, from: u64, to: u64) {
    let items = me.items();
    me.run(|tx| {
        let Some(count) = items.get(tx, &from, Item::COUNT)? else { return Ok(()) };
        items.delete(tx, &from)?;
        match items.get(tx, &to, ())? {
            Some(()) => items.update(tx, &to, Item::COUNT.add(count)),
            None => items.insert(tx, Item::new(to, count)),
        }
    });
}

/// Returns the counts of all rows; `None` for each row that does not exist.
fn counts<P: Protocol>(
    items: &crate::Table<Item, Recorded<P>>,
    tx: &crate::Tx<'_, Recorded<P>>,
) -> Result<Vec<Option<i64>>, Abort> {
    (0..ROWS).map(|id| items.get(tx, &id, Item::COUNT)).collect()
}

fn assert_whole(counts: &[Option<i64>]) {
    assert_eq!(counts.iter().flatten().sum::<i64>(), 30, "of different times: {counts:?}");
}

/// Asserts that no garbage remains when no snapshot is open.
fn assert_all_is_freed<P: Versioned>(me: &mut Actor<'_, P>) {
    (0..12).for_each(|_| me.advance());
    me.stage.pass();
    let garbage = me.stage.db.memory().garbage;
    assert_eq!(garbage, 0, "no snapshot is open, and something is kept");
}

/// A snapshot is read several times, while rows are moved, deleted and inserted, and old versions
/// are collected. The rows in the snapshot must not change.
pub(super) fn snapshots<P: Versioned>() -> Scene<P> {
    fn look<P: Versioned>(me: &mut Actor<'_, P>) {
        let (items, snapshot) = (me.items(), me.stage.db.snapshot());
        let mut seen = None;
        for _ in 0..3 {
            let counts = snapshot
                .run_in(&mut me.session, |tx| counts(&items, tx))
                .unwrap_or_else(|abort| panic!("{abort}"));
            assert_whole(&counts);
            assert_eq!(
                *seen.get_or_insert_with(|| counts.clone()),
                counts,
                "a snapshot has changed"
            );
            me.pass();
        }
    }
    Scene::peaceful("snapshots")
        .before(|me| me.fill(0..ROWS, 10))
        .part(|me| {
            for (from, to) in [(0, 1), (1, 0), (0, 2)] {
                move_all(me, from, to);
                me.advance();
            }
        })
        .part(look)
        .part(look)
        .shows("burial")
}

/// Garbage is parked for snapshots that may close at any time. Such garbage is queued again,
/// collected by other sessions, and freed. All of it must be freed, and each part once.
pub(super) fn parked<P: Versioned>() -> Scene<P> {
    fn churn<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for (from, to) in [(0, 1), (1, 0)] {
            move_all(me, from, to);
            me.run(|tx| items.update(tx, 2, Item::OTHER.add(1)));
            me.advance();
        }
    }
    fn look<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            let snapshot = me.stage.db.snapshot();
            let mut look = || {
                snapshot
                    .run_in(&mut me.session, |tx| counts(&items, tx))
                    .unwrap_or_else(|abort| panic!("{abort}"))
            };
            let seen = look();
            me.stage.pass();
            me.stage.pass();
            assert_eq!(look(), seen, "a snapshot has changed");
            assert_whole(&seen);
        }
    }
    Scene::new("parked")
        .before(|me| me.fill(0..ROWS, 10))
        .part(churn)
        .part(churn)
        .part(look)
        .after(|me| {
            assert_all_is_freed(me);
            let items = me.items();
            for id in 0..ROWS {
                let is_linked = matches!(items.core().index.find(&[id]), Found::Record(_));
                assert_eq!(
                    is_linked,
                    me.run(|tx| items.get(tx, &id, ())).is_some(),
                    "a row is gone, and its record is kept"
                );
            }
        })
        .shows("burial")
}

/// Rows of an ordered table are deleted at one end and inserted at the other, and back again.
/// Meanwhile snapshots that still see the deleted rows open and close. Each snapshot must find all
/// its rows, by their keys and by scans in both directions.
pub(super) fn stowed<P: Versioned>() -> Scene<P> {
    fn move_on<P: Versioned>(me: &mut Actor<'_, P>) {
        let parcels = me.parcels();
        for number in [0, 1, 0, 2] {
            me.run(|tx| {
                let (from, to) =
                    if parcels.get(tx, &(0, number), ())?.is_some() { (0, 1) } else { (1, 0) };
                parcels.delete(tx, &(from, number))?;
                parcels.insert(tx, Parcel::new(to, number))
            });
            me.advance();
        }
    }
    fn look<P: Versioned>(me: &mut Actor<'_, P>) {
        let parcels = me.parcels();
        let mut older = None;
        for _ in 0..3 {
            let snapshot = me.stage.db.snapshot();
            let mut look = |snapshot: &Snapshot<Recorded<P>>| {
                let look = |tx: &crate::Tx<'_, Recorded<P>>| {
                    let forward = parcels.iter(tx, ()).collect::<Result<Vec<_>, _>>()?;
                    me.stage.pass();
                    let mut back = parcels.scan_rev(tx, .., ()).collect::<Result<Vec<_>, _>>()?;
                    back.reverse();
                    assert_eq!(back, forward, "scans in the two directions see different rows");
                    for of in 0..2 {
                        for number in 0..3 {
                            let is_there = parcels.get(tx, &(of, number), ())?.is_some();
                            assert_eq!(
                                is_there,
                                forward.contains(&((of, number), ())),
                                "a lookup by key sees another row"
                            );
                        }
                    }
                    Ok(forward)
                };
                snapshot.run_in(&mut me.session, look).unwrap_or_else(|abort| panic!("{abort}"))
            };
            let seen = look(&snapshot);
            assert_eq!(seen.len(), 3, "of different times: {seen:?}");
            if let Some((older, before)) = &older {
                assert_eq!(look(older), *before, "a snapshot has changed");
            }
            if parcels.core().deleted_index().is_some_and(|deleted_index| !deleted_index.is_empty())
            {
                me.saw("deleted_index");
            }
            older = Some((snapshot, seen));
            me.pass();
        }
    }
    let scene = Scene::new("stowed")
        .before(|me| {
            let parcels = me.parcels();
            me.run(|tx| (0..3).try_for_each(|number| parcels.insert(tx, Parcel::new(0, number))));
        })
        .part(move_on)
        .part(move_on)
        .part(look)
        .after(assert_all_is_freed);
    if P::Versions::KEEPS_DELETED_INDEX { scene.shows("deleted_index") } else { scene }
}

/// Different columns of a row are written while an old snapshot and younger snapshots are open, and
/// several sessions collect in the row's chain. Each snapshot must see a whole row, and no garbage
/// may remain.
pub(super) fn pruned<P: Versioned>() -> Scene<P> {
    fn write<P: Versioned>(me: &mut Actor<'_, P>, is_first: bool) {
        let items = me.items();
        for value in 1..5 {
            me.run(|tx| {
                let small = items.read(tx, 0, Item::SMALL)?;
                if is_first {
                    items.update(tx, 0, Item::COUNT.add(1))?;
                    items.update(tx, 1, Item::COUNT.add(-1))
                } else {
                    items.update(
                        tx,
                        &0,
                        (Item::SMALL.set(small + 1), Item::FLAG.set(value % 2 == 0)),
                    )
                }
            });
            me.advance();
        }
    }
    fn look<P: Versioned>(me: &mut Actor<'_, P>) {
        let (items, stage) = (me.items(), me.stage);
        let mut open = Vec::new();
        for round in 0..4 {
            let snapshot = stage.db.snapshot();
            let mut rows = |snapshot: &Snapshot<Recorded<P>>| {
                let rows = |tx: &crate::Tx<'_, Recorded<P>>| {
                    (0..2).map(|id| items.get(tx, &id, Whole)).collect()
                };
                let rows: Vec<_> = snapshot.run_in(&mut me.session, rows).unwrap();
                assert_eq!(
                    rows.iter().flatten().map(|row| row.count).sum::<i64>(),
                    20,
                    "of different times: {rows:?}"
                );
                rows
            };
            let seen = rows(&snapshot);
            open.push((snapshot, seen));
            stage.pass();
            for (snapshot, seen) in &open {
                assert_eq!(rows(snapshot), *seen, "a snapshot has changed");
            }
            if round % 2 == 1 {
                // The first snapshot stays open.
                open.remove(1);
            }
        }
    }
    Scene::new("pruned")
        .before(|me| me.fill(0..ROWS, 10))
        .part(|me| write(me, true))
        .part(|me| write(me, false))
        .part(look)
        .after(assert_all_is_freed)
}

/// All sessions collect the garbage of rows that are written all the time, even while a session is
/// reading older versions of these rows.
pub(super) fn hot<P: Versioned>() -> Scene<P> {
    fn write<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..5 {
            me.run(|tx| {
                items.update(tx, 0, Item::COUNT.add(1))?;
                items.update(tx, 1, Item::COUNT.add(-1))
            });
            me.advance();
            if !me.stage.db.inner.engine.shared_garbage.is_empty() {
                me.stage.saw("hot");
            }
        }
    }
    fn look<P: Versioned>(me: &mut Actor<'_, P>) {
        let (items, stage) = (me.items(), me.stage);
        for _ in 0..2 {
            let looked = stage.db.snapshot().run_in(&mut me.session, |tx| {
                let seen = counts(&items, tx)?;
                assert_whole(&seen);
                for _ in 0..3 {
                    stage.pass();
                    assert_eq!(counts(&items, tx)?, seen, "a snapshot has changed");
                }
                Ok(())
            });
            looked.unwrap();
        }
    }
    let scene = Scene::peaceful("hot")
        .before(|me| me.fill(0..ROWS, 10))
        .part(write)
        .part(write)
        .part(look)
        .after(assert_all_is_freed);
    // If versions are stored as undo records of parts of a row, each session keeps its own garbage.
    if P::Versions::SHORT_WORDS == 0 { scene.shows("hot") } else { scene }
}

/// A read-only transaction sees one moment, though it does not validate its reads at the end.
pub(super) fn reports<P: Versioned>() -> Scene<P> {
    fn act<P: Versioned>(me: &mut Actor<'_, P>) {
        for (from, to) in [(0, 1), (1, 0)] {
            move_all(me, from, to);
            me.pass();
        }
    }
    fn report<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            let mut runs = 0;
            let counts = me.session.read_view(|tx| {
                runs += 1;
                counts(&items, tx)
            });
            assert_whole(&counts.unwrap());
            assert_eq!(runs, 1, "the transaction met a conflict");
            me.advance();
        }
    }
    Scene::new("reports").before(|me| me.fill(0..ROWS, 10)).part(act).part(act).part(report)
}

/// One commit after another overtakes a reading transaction that may still write. The transaction
/// moves on in time until it cannot move on any more.
pub(super) fn overtaken<P: Versioned>() -> Scene<P> {
    const ROWS: u64 = 4;
    /// The keys of rows that are never written. These reads make the revalidation of all reads take
    /// longer.
    const STILL: std::ops::Range<u64> = ROWS..8;
    fn pay<P: Versioned>(me: &mut Actor<'_, P>, from: u64, to: u64) {
        let items = me.items();
        for _ in 0..16 {
            me.run(|tx| {
                items.update(tx, &from, Item::COUNT.add(-1))?;
                items.update(tx, &to, Item::COUNT.add(1))
            });
        }
    }
    fn look<P: Versioned>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..12 {
            let counts = me.run(|tx| {
                STILL
                    .chain(0..ROWS)
                    .map(|id| items.read(tx, &id, Item::COUNT))
                    .collect::<Result<Vec<_>, Abort>>()
            });
            assert_eq!(counts.iter().sum::<i64>(), 80, "of different times: {counts:?}");
        }
    }
    // Rows are read in the order of their keys. When the transaction reads the second row, it can
    // move on as long as the first row is unchanged.
    let mut scene = Scene::new("overtaken").before(|me| me.fill(0..STILL.end, 10)).part(look);
    for _ in 0..3 {
        scene = scene.part(|me| pay(me, 2, 1));
    }
    for _ in 0..2 {
        scene = scene.part(|me| pay(me, 1, 0));
    }
    scene
}
