//! Tests of timestamps: which transactions may be serialized before transactions that have ended
//! already, and which must not.
//!
//! Scripts are run with exact interleavings: one session's transactions run inside the closure of
//! another session's transaction.

mod untimed;

use super::indexed_rows::{Filed, Parcel};
use super::interleaving::acting;
use super::random_transactions::Judge;
use super::rows::Item;
use super::threads::spawn;
use super::transactions::{CONFLICT, ONCE, run};
use crate::engine::Protocol;
use crate::protocols::{Occ, Recorded, TicToc};
use crate::sync::Point;
use crate::{Abort, Database, Session, Table, Tx};
use candide_check::Options;
use std::sync::Barrier;
use untimed::Untimed;

/// A database whose clock does not advance. The items 1, 2 and 3 of the database have the count
/// zero.
struct Scene<P: Protocol> {
    db: Database<P>,
    items: Table<Item, P>,
    parcels: Table<Parcel, P>,
    filed: Table<Filed, P>,
}

type Step<P> = fn(&Scene<P>, &Tx<'_, P>) -> Result<(), Abort>;

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
        let (items, parcels) = (db.table("items").unwrap(), db.table("parcels").unwrap());
        let scene = Scene { items, parcels, filed: db.table("filed").unwrap(), db };
        run(&mut scene.session(), |tx| {
            (1..=3).try_for_each(|id| scene.items.insert(tx, Item::new(id, 0)))
        });
        scene
    }

    fn session(&self) -> Session<P> {
        self.db.session().unwrap()
    }

    fn pass(&self) {
        self.db.inner.engine.epochs.pass();
    }

    /// Returns the number of items that have a record in the index.
    fn linked(&self) -> usize {
        let mut linked = 0;
        self.items.core().index.for_each(&mut |_| linked += 1);
        linked
    }

    /// Gives item 1 timestamps far above those of all other items and nodes.
    fn age_item_1(&self, session: &mut Session<P>) {
        (0..20).for_each(|_| run(session, |tx| self.items.update(tx, 1, Item::COUNT.set(0))));
    }

    /// Extends the first version of item 1, so that it is valid far beyond its write timestamp.
    fn extend_item_1(&self, session: &mut Session<P>) {
        (0..20).for_each(|_| run(session, |tx| self.items.update(tx, 3, Item::COUNT.add(1))));
        run(session, |tx| {
            assert_eq!(self.items.read(tx, 1, Item::COUNT)?, 0);
            self.items.read(tx, 3, Item::COUNT).map(drop)
        });
    }

    /// Overwrites item 1. The commit's timestamp is above all other timestamps.
    fn overwrite_item_1(&self, tx: &Tx<'_, P>) -> Result<(), Abort> {
        self.items.update(tx, 1, Item::COUNT.add(1))
    }
}

/// A script in which a transaction tries to get a timestamp below that of an earlier one. T3 has
/// read item 1. Then T1 overwrites item 1 and finds a key absent (`miss`). Then further
/// transactions run (`between`). T2 inserts that key (`make`), and T3 reads it (`see`). So T1 comes
/// before T2, T2 before T3, and T3 before T1.
struct Script<P: Protocol> {
    name: &'static str,
    /// The transactions before T3. If one returns an error, it is rolled back.
    before: Vec<Step<P>>,
    miss: Step<P>,
    between: Vec<Step<P>>,
    make: Step<P>,
    see: Step<P>,
}

/// Returns whether T3 commits although it has seen the write of T2.
fn commits_below<P: Protocol>(script: &Script<P>) -> bool {
    let scene = Scene::<P>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    for step in &script.before {
        let ended = other.with(ONCE()).run(|tx| step(&scene, tx));
        assert!(matches!(ended, Ok(()) | Err(Abort::NotFound)), "{}: {ended:?}", script.name);
    }
    // The records of absent rows are removed when the next transaction of their session ends. This
    // is T1.
    scene.pass();
    scene.age_item_1(&mut session);
    let attempts = session.run(|tx| {
        let old = scene.items.read(tx, 1, Item::COUNT)?;
        if tx.attempt_number() == 1 {
            run(&mut other, |tx| {
                (script.miss)(&scene, tx)?;
                scene.overwrite_item_1(tx)
            });
            script.between.iter().for_each(|step| run(&mut other, |tx| step(&scene, tx)));
            run(&mut other, |tx| (script.make)(&scene, tx));
        }
        (script.see)(&scene, tx)?;
        assert_eq!(old == 0, tx.attempt_number() == 1);
        Ok(tx.attempt_number())
    });
    attempts == Ok(1)
}

/// Returns parcel `number` of district 1.
fn parcel(number: u16) -> Parcel {
    Parcel::new(1, number)
}

/// A script about parcel `N` of district 1, which T1 looks up by its key.
fn missed_parcel<P: Protocol, const N: u16>() -> Script<P> {
    Script {
        name: "a parcel that was missed",
        before: vec![],
        miss: |scene, tx| {
            assert_eq!(scene.parcels.get(tx, &(1, N), ())?, None);
            Ok(())
        },
        between: vec![],
        make: |scene, tx| scene.parcels.insert(tx, parcel(N)),
        see: |scene, tx| scene.parcels.read(tx, &(1, N), ()),
    }
}

fn fill<P: Protocol>(
    scene: &Scene<P>,
    tx: &Tx<'_, P>,
    numbers: impl Iterator<Item = u16>,
) -> Result<(), Abort> {
    for number in numbers {
        scene.parcels.insert(tx, parcel(number))?;
    }
    Ok(())
}

fn empty<P: Protocol>(
    scene: &Scene<P>,
    tx: &Tx<'_, P>,
    mut numbers: impl Iterator<Item = u16>,
) -> Result<(), Abort> {
    numbers.try_for_each(|number| scene.parcels.delete(tx, &(1, number)))
}

/// The basic counter-example: the key has no record.
fn missed_key<P: Protocol>() -> Script<P> {
    Script {
        name: "a key that was missed",
        before: vec![],
        miss: |scene, tx| {
            assert_eq!(scene.items.get(tx, 9, ())?, None);
            Ok(())
        },
        between: vec![],
        make: |scene, tx| scene.items.insert(tx, Item::new(9, 1)),
        see: |scene, tx| scene.items.read(tx, 9, ()),
    }
}

fn scanned_range<P: Protocol>() -> Script<P> {
    Script {
        name: "a range that was empty",
        before: vec![|scene, tx| fill(scene, tx, [1, 20].into_iter())],
        miss: |scene, tx| {
            assert_eq!(scene.parcels.scan(tx, (1, 5)..(1, 15), ()).count()?, 0);
            Ok(())
        },
        see: |scene, tx| {
            scene.parcels.scan_rev(tx, (1, 5)..(1, 15), ()).try_for_each(|row| row.map(drop))
        },
        ..missed_parcel::<P, 9>()
    }
}

fn scanned_table<P: Protocol>() -> Script<P> {
    Script {
        name: "a table without order that was gone through",
        miss: |scene, tx| {
            assert_eq!(scene.items.iter(tx, ()).count()?, 3);
            Ok(())
        },
        ..missed_key()
    }
}

/// T1 finds the record of a deleted row. When the record is removed, T1's timestamp in it must not
/// be lost.
fn buried_tombstone<P: Protocol>() -> Script<P> {
    Script {
        name: "a row that was deleted, and reaped",
        before: vec![|scene, tx| scene.items.insert(tx, Item::new(9, 1)), |scene, tx| {
            scene.items.delete(tx, 9)
        }],
        between: vec![|scene, _| {
            assert_eq!(scene.linked(), 3, "it is reaped");
            Ok(())
        }],
        ..missed_key()
    }
}

fn buried_failure<P: Protocol>() -> Script<P> {
    Script {
        name: "an insert that failed, and was reaped",
        before: vec![|scene, tx| {
            scene.items.insert(tx, Item::new(9, 1))?;
            Err(Abort::NotFound)
        }],
        ..buried_tombstone()
    }
}

fn growth<P: Protocol>() -> Script<P> {
    Script {
        name: "a hash table that grew",
        between: vec![|scene, tx| {
            (100..400).try_for_each(|id| scene.items.insert(tx, Item::new(id, 0)))
        }],
        ..missed_key()
    }
}

fn split_root<P: Protocol>() -> Script<P> {
    Script {
        name: "the only leaf of a layer, divided",
        before: vec![|scene, tx| fill(scene, tx, (10..=140).step_by(10))],
        between: vec![|scene, tx| fill(scene, tx, [71].into_iter())],
        ..missed_parcel::<P, 75>()
    }
}

fn split_leaf<P: Protocol>() -> Script<P> {
    Script {
        name: "one of many leaves, divided",
        before: vec![|scene, tx| fill(scene, tx, (10..=600).step_by(10))],
        miss: |scene, tx| {
            assert_eq!(scene.parcels.scan(tx, (1, 251)..=(1, 259), ()).count()?, 0);
            Ok(())
        },
        between: vec![|scene, tx| {
            fill(scene, tx, (231..=279).filter(|number| number % 10 != 0 && *number != 255))
        }],
        ..missed_parcel::<P, 255>()
    }
}

fn new_layer<P: Protocol>() -> Script<P> {
    Script {
        name: "a slot that became a layer",
        before: vec![|scene, tx| fill(scene, tx, [1].into_iter())],
        between: vec![|scene, tx| fill(scene, tx, [3].into_iter())],
        ..missed_parcel::<P, 5>()
    }
}

fn removed_leaf<P: Protocol>() -> Script<P> {
    Script {
        name: "a leaf that was removed",
        before: vec![|scene, tx| fill(scene, tx, (10..=600).step_by(10)), |scene, tx| {
            empty(scene, tx, (160..=450).step_by(10))
        }],
        ..missed_parcel::<P, 255>()
    }
}

/// The layer has two leaves. T1 has searched the first leaf. The second leaf is removed, and the
/// first leaf becomes the root of the layer.
fn taken_over_leaf<P: Protocol>() -> Script<P> {
    Script {
        name: "a leaf that became its layer's root",
        before: vec![
            |scene, tx| fill(scene, tx, (10..=140).step_by(10).chain([75])),
            |scene, tx| {
                empty(scene, tx, (71..=140).filter(|number| number % 10 == 0 || *number == 75))
            },
        ],
        ..missed_parcel::<P, 35>()
    }
}

fn removed_layer<P: Protocol>() -> Script<P> {
    Script {
        name: "a layer that was removed",
        before: vec![|scene, tx| fill(scene, tx, [1, 2].into_iter()), |scene, tx| {
            empty(scene, tx, [1, 2].into_iter())
        }],
        ..missed_parcel::<P, 5>()
    }
}

fn unique_index<P: Protocol>() -> Script<P> {
    Script {
        name: "a unique index without an entry",
        before: vec![],
        miss: |scene, tx| {
            assert_eq!(scene.filed.index(Filed::BY_CODE).get(tx, 1_009, ())?, None);
            Ok(())
        },
        between: vec![],
        make: |scene, tx| scene.filed.insert(tx, parcel(9).into()),
        see: |scene, tx| scene.filed.index(Filed::BY_CODE).read(tx, 1_009, ()),
    }
}

fn ordered_index<P: Protocol>() -> Script<P> {
    Script {
        name: "a range of an index without entries",
        miss: |scene, tx| {
            assert_eq!(
                scene.filed.index(Filed::BY_PLACE).scan(tx, (1, -1)..(1, 1), ()).count()?,
                0
            );
            Ok(())
        },
        see: |scene, tx| {
            scene.filed.index(Filed::BY_PLACE).scan(tx, (1, -1)..(1, 1), ()).for_each(drop)
        },
        ..unique_index()
    }
}

/// T1 has looked for no absent key, but has read a row, and T2 replaces the row.
fn read_row<P: Protocol>() -> Script<P> {
    Script {
        name: "a row that was read",
        miss: |scene, tx| scene.items.read(tx, 2, Item::COUNT).map(drop),
        make: |scene, tx| scene.items.update(tx, 2, Item::COUNT.add(1)),
        see: |scene, tx| scene.items.read(tx, 2, Item::COUNT).map(drop),
        ..missed_key()
    }
}

/// Asserts that TicToc prevents T3's commit, and that without timestamps in nodes T3 commits.
fn assert_stopped(timed: Script<TicToc>, untimed: Script<Untimed>) {
    assert!(!commits_below(&timed), "{}", timed.name);
    assert!(commits_below(&untimed), "{}: the script shows nothing", untimed.name);
}

/// Makes tests that each call [`assert_stopped`] for some scripts.
macro_rules! stopped {
    ($($test:ident: $($script:ident),+;)+) => {
        $(#[test] fn $test() { $(assert_stopped($script(), $script());)+ })+
    };
}

stopped! {
    no_insert_commits_below_a_reader_that_missed_its_key: missed_key, unique_index;
    no_insert_commits_below_a_scan_of_its_range: scanned_range, scanned_table, ordered_index;
    no_insert_commits_below_a_reader_of_a_tombstone_that_was_buried_since: buried_tombstone;
    no_insert_commits_below_a_reader_of_a_failed_insert_that_was_buried_since: buried_failure;
    no_insert_commits_below_a_reader_that_missed_its_key_before_the_table_grew: growth;
    no_insert_commits_below_a_reader_that_missed_its_key_before_a_leaf_was_divided:
        split_root, split_leaf, new_layer;
    no_insert_commits_below_a_reader_that_missed_its_key_before_a_leaf_was_removed:
        removed_leaf, taken_over_leaf, removed_layer;
}

#[test]
fn no_update_commits_below_a_reader_of_its_row() {
    assert!(!commits_below::<TicToc>(&read_row()));
}

/// T2 holds the row when T1 reads it. T1's timestamp is far above the timestamp that T2 would have
/// got without this read.
#[test]
fn no_holder_commits_below_a_reader_of_its_row() {
    let scene = Scene::<TicToc>::new();
    let [mut t1, mut t2, mut t3] = [(); 3].map(|()| scene.session());
    scene.age_item_1(&mut t1);
    let ended = t3.with(ONCE()).run(|tx| {
        assert_eq!(scene.items.read(tx, 1, Item::COUNT)?, 0);
        run(&mut t2, |tx| {
            scene.items.read_for_update(tx, 2, Item::COUNT)?;
            run(&mut t1, |tx| {
                scene.items.read(tx, 2, Item::COUNT)?;
                scene.overwrite_item_1(tx)
            });
            scene.items.update(tx, 2, Item::COUNT.add(1))
        });
        scene.items.read(tx, 2, Item::COUNT).map(drop)
    });
    assert_eq!(ended, CONFLICT);
}

/// The failure of a guard shows T1 the row's value, so it counts as a read.
#[test]
fn no_update_commits_below_an_outcome_that_depends_on_it() {
    let scene = Scene::<TicToc>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    scene.age_item_1(&mut session);
    let ended = session.with(ONCE()).run(|tx| {
        scene.items.read(tx, 1, Item::COUNT)?;
        run(&mut other, |tx| scene.overwrite_item_1(tx));
        let refused = other.with(ONCE()).run(|tx| {
            scene.items.read(tx, 1, Item::COUNT)?;
            scene.items.update(tx, 2, Item::COUNT.sub(1).at_least(0))
        });
        assert_eq!(refused, Err(Abort::Guard));
        run(&mut other, |tx| scene.items.update(tx, 2, Item::COUNT.add(1)));
        scene.items.read(tx, 2, Item::COUNT).map(drop)
    });
    assert_eq!(ended, CONFLICT);
}

/// Here T1 inserts and deletes the row within its transaction.
#[test]
fn no_insert_commits_below_an_undone_insert() {
    let scene = Scene::<TicToc>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    scene.age_item_1(&mut session);
    let ended = session.with(ONCE()).run(|tx| {
        scene.items.read(tx, 1, Item::COUNT)?;
        run(&mut other, |tx| scene.overwrite_item_1(tx));
        run(&mut other, |tx| {
            scene.items.read(tx, 1, Item::COUNT)?;
            scene.items.insert(tx, Item::new(9, 1))?;
            scene.items.delete(tx, 9)
        });
        run(&mut other, |tx| scene.items.insert(tx, Item::new(9, 2)));
        scene.items.read(tx, 9, Item::COUNT).map(drop)
    });
    assert_eq!(ended, CONFLICT);
}

/// Transaction T finds a key absent after the key's row was deleted, so T comes after the delete.
/// Only the node's nwts still shows the delete. W has read a row that the deleting transaction
/// replaces, so W comes before the delete. T does not see W's write, so T comes before W. The three
/// orders form a cycle.
#[test]
fn a_reader_that_misses_a_key_comes_after_the_delete() {
    let scene = Scene::<TicToc>::new();
    run(&mut scene.session(), |tx| scene.items.insert(tx, Item::new(9, 1)));
    // The timestamp of the delete will be far above that of W.
    scene.age_item_1(&mut scene.session());
    let (begun, goes_on) = (Barrier::new(2), Barrier::new(2));
    let ended = std::thread::scope(|scope| {
        let mut w = scene.session();
        let (scene, begun, goes_on) = (&scene, &begun, &goes_on);
        let w = spawn(scope, move || {
            run(&mut w, |tx| {
                scene.items.read(tx, 1, Item::COUNT)?;
                begun.wait();
                goes_on.wait();
                scene.items.update(tx, 2, Item::COUNT.add(1))
            });
        });
        let (mut other, mut t) = (scene.session(), scene.session());
        begun.wait();
        run(&mut other, |tx| {
            scene.overwrite_item_1(tx)?;
            scene.items.delete(tx, 9)
        });
        scene.pass();
        let mut w = Some(w);
        t.with(ONCE()).run(|tx| {
            assert_eq!(scene.items.read(tx, 2, Item::COUNT)?, 0);
            goes_on.wait();
            w.take().expect("one attempt").join().unwrap();
            scene.pass();
            run(&mut other, |tx| scene.items.read(tx, 3, Item::COUNT).map(drop));
            assert_eq!(scene.linked(), 3, "it is reaped");
            assert_eq!(scene.items.get(tx, 9, ())?, None);
            Ok(())
        })
    });
    assert_eq!(ended, CONFLICT);
}

/// Runs a transaction that reads item 1 as it was and then item 3. The caller lets another
/// transaction run at a point of the commit.
fn read_old_and_new(scene: &Scene<TicToc>, session: &mut Session<TicToc>) -> Result<(), Abort> {
    session.with(ONCE()).run(|tx| {
        assert_eq!(scene.items.read(tx, 1, Item::COUNT)?, 0);
        scene.items.read(tx, 3, Item::COUNT).map(drop)
    })
}

#[test]
fn a_version_that_is_replaced_while_it_is_looked_at_is_not_extended() {
    let scene = Scene::<TicToc>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    (0..20).for_each(|_| run(&mut other, |tx| scene.items.update(tx, 3, Item::COUNT.add(1))));
    let items = scene.items.clone();
    let overwrite = move || run(&mut other, |tx| items.update(tx, 1, Item::COUNT.add(1)));
    let ended = acting(Point::Extending, overwrite, || read_old_and_new(&scene, &mut session));
    assert_eq!(ended, CONFLICT);
}

#[test]
fn a_version_that_is_about_to_be_replaced_is_not_extended() {
    let scene = Scene::<TicToc>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    (0..20).for_each(|_| run(&mut other, |tx| scene.items.update(tx, 3, Item::COUNT.add(1))));
    let (read, ended) = (Barrier::new(2), std::sync::Arc::new(Barrier::new(2)));
    let validated = std::sync::Arc::new(Barrier::new(2));
    let result = std::thread::scope(|scope| {
        let (scene, read, its_end, its_turn) = (&scene, &read, ended.clone(), validated.clone());
        let reader = spawn(scope, move || {
            let result = session.with(ONCE()).run(|tx| {
                assert_eq!(scene.items.read(tx, 1, Item::COUNT)?, 0);
                scene.items.read(tx, 3, Item::COUNT)?;
                read.wait();
                its_turn.wait();
                Ok(())
            });
            its_end.wait();
            result
        });
        read.wait();
        // When the reader validates, the writer already has its timestamp, which is below the
        // reader's timestamp.
        let pause = move || {
            validated.wait();
            ended.wait();
        };
        acting(Point::Validated, pause, || {
            run(&mut other, |tx| scene.items.update(tx, 1, Item::COUNT.add(1)))
        });
        reader.join().unwrap()
    });
    assert_eq!(result, CONFLICT);
}

#[test]
fn a_value_and_its_timestamps_are_of_one_version() {
    let scene = Scene::<TicToc>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    let items = scene.items.clone();
    let both = move || {
        run(&mut other, |tx| {
            items.update(tx, 1, Item::COUNT.add(1))?;
            items.update(tx, 2, Item::COUNT.add(1))
        });
    };
    let seen = acting(Point::Copied, both, || {
        session.with(ONCE()).run(|tx| {
            Ok([scene.items.read(tx, 1, Item::COUNT)?, scene.items.read(tx, 2, Item::COUNT)?])
        })
    });
    assert!(matches!(seen, Ok([0, 0] | [1, 1]) | Err(Abort::AttemptsExhausted)), "{seen:?}");
}

/// Returns the number of attempts of a transaction that reads item 1 and writes item 2, if item 1
/// is overwritten in between.
fn attempts_after_overwrite<P: Protocol>(prepare: fn(&Scene<P>, &mut Session<P>)) -> u32 {
    let scene = Scene::<P>::new();
    let (mut session, mut other) = (scene.session(), scene.session());
    prepare(&scene, &mut other);
    let attempts = session.run(|tx| {
        scene.items.read(tx, 1, Item::COUNT)?;
        if tx.attempt_number() == 1 {
            run(&mut other, |tx| scene.overwrite_item_1(tx));
        }
        scene.items.update(tx, 2, Item::COUNT.add(1))?;
        Ok(tx.attempt_number())
    });
    attempts.unwrap()
}

/// The schedule of the third figure of "Opportunities for Optimism": one transaction ends later
/// than the other, but comes first in the serial order.
#[test]
fn a_reader_of_an_overwritten_row_may_be_ordered_first() {
    assert_eq!(attempts_after_overwrite::<Occ>(Scene::age_item_1), 2);
    assert_eq!(attempts_after_overwrite::<TicToc>(Scene::age_item_1), 1);
    assert_eq!(attempts_after_overwrite::<Occ>(Scene::extend_item_1), 2);
    assert_eq!(attempts_after_overwrite::<TicToc>(Scene::extend_item_1), 1);
}

/// R finds the record of a failed insert. Then the row is inserted and deleted. The record has been
/// queued for removal since before R began, but it must not be removed before R ends. Otherwise a
/// history would take the absence that R saw to be the result of the delete.
#[test]
fn a_row_that_was_deleted_while_its_record_was_queued_is_not_buried_early() {
    let scene = Scene::<Recorded<TicToc>>::new();
    let [mut failing, mut other, mut r] = [(); 3].map(|()| scene.session());
    let failed = failing.with(ONCE()).run(|tx| {
        scene.items.insert(tx, Item::new(9, 1))?;
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!(failed, Err(Abort::NotFound));
    // This reader reads both keys. So the versions that R reads are valid at one common time,
    // whatever happens to them later.
    run(&mut other, |tx| {
        assert_eq!(scene.items.get(tx, 9, ())?, None);
        scene.items.read(tx, 1, Item::COUNT).map(drop)
    });
    scene.pass();
    run(&mut r, |tx| {
        assert_eq!(scene.items.get(tx, 9, ())?, None);
        assert_eq!(scene.items.read(tx, 1, Item::COUNT)?, 0);
        run(&mut other, |tx| {
            scene.items.insert(tx, Item::new(9, 2))?;
            scene.overwrite_item_1(tx)
        });
        run(&mut other, |tx| scene.items.delete(tx, 9));
        for _ in 0..4 {
            run(&mut failing, |tx| scene.items.read(tx, 3, Item::COUNT).map(drop));
            scene.pass();
        }
        Ok(())
    });
    assert_eq!(scene.linked(), 4);
    for _ in 0..4 {
        run(&mut failing, |tx| scene.items.read(tx, 3, Item::COUNT).map(drop));
        scene.pass();
    }
    assert_eq!(scene.linked(), 3);
    let mut judge = Judge::new(
        Options { strict: false, opaque: false, horizon: 1 << 20 },
        "burial".to_string(),
    );
    judge.hear(&scene.db.take_history());
    judge.judge();
}
