//! Tests that each basis factor switches the engine to the other choice.

use super::indexed_rows::Parcel;
use super::rows::Item;
use super::transactions::{CONFLICT, ONCE, run};
use crate::engine::Protocol;
use crate::experiments::Factor;
use crate::protocols::{Occ, TicToc};
use crate::{Abort, Database, Error, IndexOptions, Session, Table, TableOptions};
use std::cell::Cell;

/// A database with items. Explicit calls move its epochs.
struct Scene<P: Protocol> {
    db: Database<P>,
    items: Table<Item, P>,
    session: Session<P>,
}

fn scene<P: Protocol>(factor: Option<Factor>, options: TableOptions) -> Scene<P> {
    let db = Database::<P>::builder().manual_epochs(1).seed(1).factors(factor).build().unwrap();
    let items = db.table_with("items", options).unwrap();
    let session = db.session().unwrap();
    Scene { db, items, session }
}

impl<P: Protocol> Scene<P> {
    fn insert(&mut self, keys: std::ops::Range<u64>) {
        let items = &self.items;
        for key in keys {
            run(&mut self.session, |tx| items.insert(tx, Item::new(key, key as i64)));
        }
    }

    fn delete(&mut self, keys: std::ops::Range<u64>) {
        let items = &self.items;
        for key in keys {
            run(&mut self.session, |tx| items.delete(tx, &key));
        }
    }

    /// Lets `epochs` epochs pass, with a transaction of the session in each.
    fn pass(&mut self, epochs: u32) {
        for _ in 0..epochs {
            self.db.inner.engine.epochs.pass();
            run(&mut self.session, |_| Ok(()));
        }
    }
}

/// Returns the allocators that this build can choose in place of slabs.
fn allocators() -> impl Iterator<Item = Factor> {
    let allocators = [Factor::SystemAllocator, Factor::Mimalloc, Factor::Jemalloc];
    allocators.into_iter().filter(|factor| factor.is_available())
}

protocol_tests!(all: allocators_of_all_kinds_get_all_memory_back);
fn allocators_of_all_kinds_get_all_memory_back<P: Protocol>() {
    for factor in std::iter::once(None).chain(allocators().map(Some)) {
        let mut scene = scene::<P>(factor, TableOptions::default().ordered());
        let before = scene.db.memory().reserved_bytes;
        scene.insert(0..5_000);
        let full = scene.db.memory().reserved_bytes;
        assert!(full - before > 5_000 * 40, "{} bytes", full - before);
        scene.delete(0..5_000);
        scene.pass(40);
        let after = scene.db.memory().reserved_bytes;
        let goes_back = factor.is_some();
        assert_eq!(
            after < before + (full - before) / 2,
            goes_back,
            "{}, {factor:?}: {before}, {full}, {after}",
            P::NAME
        );
        scene.insert(0..5_000);
        let rows = run(&mut scene.session, |tx| scene.items.iter(tx, ()).count());
        assert_eq!(rows, 5_000);
    }
}

#[test]
fn a_database_has_one_allocator() {
    let refused = |factors: &[Factor]| {
        Database::<Occ>::builder().factors(factors.iter().copied()).build().err()
    };
    for factor in allocators() {
        assert_eq!(refused(&[factor, Factor::NoBackoff]), None);
    }
    let two = refused(&[Factor::Jemalloc, Factor::NoBackoff, Factor::SystemAllocator]).unwrap();
    assert_eq!(
        two,
        Error::TwoAllocators { first: Factor::SystemAllocator, second: Factor::Jemalloc }
    );
    assert_eq!(
        two.to_string(),
        "a database has one allocator, not both system-allocator and jemalloc; choose one of them"
    );
    for wanted in [Factor::Mimalloc, Factor::Jemalloc] {
        let expected = (!wanted.is_available()).then_some(Error::NoAllocator { wanted });
        assert_eq!(refused(&[wanted]), expected);
    }
    assert_eq!(
        Error::NoAllocator { wanted: Factor::Jemalloc }.to_string(),
        "this build has no jemalloc; build with the cargo feature `jemalloc`"
    );
}

/// A value that records whether an unwinding has dropped it.
struct Witness<'a>(&'a Cell<u32>);

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + u32::from(std::thread::panicking()));
    }
}

protocol_tests!(overlapping: conflicts_unwind_under_the_factor_of_unwinding);
fn conflicts_unwind_under_the_factor_of_unwinding<P: Protocol>() {
    for factor in [None, Some(Factor::UnwindingAborts)] {
        let Scene { db, items, mut session } = scene::<P>(factor, TableOptions::default());
        let mut other = db.session().unwrap();
        run(&mut session, |tx| items.insert(tx, Item::new(0, 0)));
        let (unwound, returned) = (Cell::new(0), Cell::new(0));
        run(&mut other, |holder| {
            items.read_for_update(holder, &0, Item::COUNT)?;
            let refused = session.with(ONCE()).run(|tx| {
                let _witness = Witness(&unwound);
                let read = items.read_for_update(tx, 0, Item::COUNT);
                returned.set(returned.get() + u32::from(read.is_err()));
                read.map(drop)
            });
            assert_eq!(refused, CONFLICT, "{}", P::NAME);
            Ok(())
        });
        assert_eq!(unwound.get() == 1, factor.is_some(), "{}", P::NAME);
        assert_eq!(returned.get(), u32::from(factor.is_none()), "{}", P::NAME);

        // A conflict at the commit unwinds only the commit, not the closure.
        let count = session.run(|tx| {
            let count = items.read(tx, 0, Item::COUNT)?;
            if tx.attempt_number() == 1 {
                run(&mut other, |tx| items.update(tx, 0, Item::COUNT.add(1)));
            }
            items.update(tx, 0, Item::COUNT.set(10 * count)).map(|()| count)
        });
        assert_eq!((count, db.stats().total_aborts()), (Ok(1), 2), "{}", P::NAME);

        // An abort that is no conflict is returned as before.
        let refused = session.run(|tx| items.insert(tx, Item::new(0, 0)));
        assert_eq!(refused, Err(Abort::Duplicate));
    }
}

/// Lets a read-only transaction read rows from two different times. So the transaction fails at
/// commit and runs again.
fn read_of_two_times<P: Protocol>() {
    for factor in [None, Some(Factor::UnwindingAborts)] {
        let mut scene = scene::<P>(factor, TableOptions::default());
        scene.insert(0..2);
        let Scene { db, items, mut session } = scene;
        let mut other = db.session().unwrap();
        let read = session.run(|tx| {
            let first = items.read(tx, 0, Item::COUNT)?;
            if tx.attempt_number() == 1 {
                run(&mut other, |tx| {
                    (0..2).try_for_each(|key| items.update(tx, &key, Item::COUNT.add(10)))
                });
            }
            Ok((first, items.read(tx, 1, Item::COUNT)?, tx.attempt_number()))
        });
        assert_eq!(read, Ok((10, 11, 2)), "{}", P::NAME);
        assert_eq!((db.stats().total_aborts(), session.stats().commits), (1, 3), "{}", P::NAME);
    }
}

#[test]
fn a_doomed_reader_fails_at_commit_with_and_without_unwinding() {
    read_of_two_times::<Occ>();
    read_of_two_times::<TicToc>();
}

protocol_tests!(all: tables_are_ordered_under_the_factor_of_ordered_indexes);
fn tables_are_ordered_under_the_factor_of_ordered_indexes<P: Protocol>() {
    for factor in [None, Some(Factor::OrderedOnly)] {
        let mut scene = scene::<P>(factor, TableOptions::default());
        scene.insert(0..1_000);
        let items = &scene.items;
        let keys = run(&mut scene.session, |tx| {
            items.iter(tx, ()).map(|row| Ok(row?.0)).collect::<Result<Vec<_>, _>>()
        });
        assert_eq!(keys.is_sorted(), factor.is_some());
        assert_eq!(keys.len(), 1_000);
    }
}

#[test]
fn indexes_recreated_in_any_order_have_the_same_entries() {
    let scene = scene::<Occ>(Some(Factor::OrderedOnly), TableOptions::default());
    for _ in 0..40 {
        scene.items.create_index("by_count", Item::COUNT, IndexOptions::hashed()).unwrap();
        scene.items.drop_index("by_count").unwrap();
    }
}

protocol_tests!(all: key_components_share_words_under_the_factor_of_packed_keys);
fn key_components_share_words_under_the_factor_of_packed_keys<P: Protocol>() {
    for factor in [None, Some(Factor::ContendedKeys)] {
        let db = Database::<P>::builder().factors(factor).build().unwrap();
        let parcels = db.table::<Parcel>("parcels").unwrap();
        assert_eq!(parcels.core().layout.key_words() == 1, factor.is_some());
        db.run(|tx| parcels.insert(tx, Parcel::new(3, 500))).unwrap();
        let found = db.run(|tx| parcels.get(tx, &(3, 500), ()));
        assert_eq!(found, Ok(Some(())));
    }
}

protocol_tests!(all: a_hash_index_does_not_grow_under_the_factor_of_fixed_size);
fn a_hash_index_does_not_grow_under_the_factor_of_fixed_size<P: Protocol>() {
    for factor in [None, Some(Factor::FixedHash)] {
        let mut scene = scene::<P>(factor, TableOptions::default().capacity(100));
        let before = scene.db.tables()[0].index_bytes;
        scene.insert(0..3_000);
        scene.pass(4);
        let after = scene.db.tables()[0].index_bytes;
        assert_eq!(before == after, factor.is_some(), "{before}, {after}");
        let items = &scene.items;
        let sum = run(&mut scene.session, |tx| {
            (0..3_000).try_fold(0, |sum, key| Ok(sum + items.read(tx, &key, Item::COUNT)?))
        });
        assert_eq!(sum, 2_999 * 3_000 / 2);
    }
}

protocol_tests!(overlapping: own_writes_are_found_without_a_table_of_places_under_the_plain_factor);
fn own_writes_are_found_without_a_table_of_places_under_the_plain_factor<P: Protocol>() {
    const ROWS: u64 = 200;
    for factor in [None, Some(Factor::PlainSets)] {
        let mut scene = scene::<P>(factor, TableOptions::default());
        scene.insert(0..ROWS);
        let Scene { items, mut session, .. } = scene;
        for round in 1..3 {
            run(&mut session, |tx| {
                (0..ROWS).try_for_each(|id| items.update(tx, id, Item::COUNT.add(1)))?;
                for id in 0..ROWS {
                    assert_eq!(items.read(tx, id, Item::COUNT)?, id as i64 + round, "{}", P::NAME);
                }
                Ok(())
            });
        }
        let state = session.core_for_tests().state.borrow();
        let has_table = state.writes.places_capacity_for_tests() > 0;
        assert_eq!(has_table, factor.is_none(), "{}", P::NAME);
    }
}
