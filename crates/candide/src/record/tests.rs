//! Tests of users' updaters that are declared total, under a protocol with deferred updates. The
//! tests cover which updaters are deferred, their round trip through words, and the updaters that
//! fail after their transaction has returned.

use crate::protocols::mvto::tests::deltas::{
    Items, Scene, await_one_version, chain, chain_of, scene,
};
use crate::protocols::{DELTAS_MAX, Mvto};
use crate::schema::{Field, KeyColumn, Refused, Updater};
use crate::sync::{AtomicU64, Ordering, Point};
use crate::tests::interleaving::acting;
use crate::tests::rows::Item;
use crate::tests::transactions::{CONFLICT, ONCE, run};
use crate::timestamps::by_the_clock;
use crate::{Abort, Column, Database, TableOptions, Tx, Whole};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

impl Scene {
    /// Collects all versions that no transaction can see any more.
    fn collect(&mut self) {
        for _ in 0..3 {
            self.db.inner.engine.epochs.pass();
            run(&mut self.first, |_| Ok(()));
            run(&mut self.second, |_| Ok(()));
        }
    }

    fn row(&self) -> Item {
        self.db.run(|tx| self.items.read(tx, 1, Whole)).unwrap()
    }
}

/// An updater of two words that multiplies the count, and adds to it.
#[derive(Debug, Clone, Copy)]
struct Linear(i64, i64);

impl Updater<Item> for Linear {
    type Target = Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        *count = count.wrapping_mul(self.0).wrapping_add(self.1);
        Ok(())
    }
}

/// An updater of no size that doubles the count and flips the flag.
#[derive(Debug, Clone, Copy)]
struct Double;

impl Updater<Item> for Double {
    type Target = (Column<Item, i64>, Column<Item, bool>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Item::COUNT, Item::FLAG)
    }

    fn apply(&self, (count, flag): &mut (i64, bool)) -> Result<(), Refused> {
        *count = count.wrapping_mul(2);
        *flag = !*flag;
        Ok(())
    }
}

/// An updater that adds `N` numbers to the count.
#[derive(Debug, Clone, Copy)]
struct Sum<const N: usize>([i64; N]);

impl<const N: usize> Updater<Item> for Sum<N> {
    type Target = Column<Item, i64>;
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        *count = self.0.iter().fold(*count, |count, &number| count.wrapping_add(number));
        Ok(())
    }
}

/// An updater that adds to the count, and is not declared total.
#[derive(Debug, Clone, Copy)]
struct Hesitant;

impl Updater<Item> for Hesitant {
    type Target = Column<Item, i64>;

    fn target(&self) -> Self::Target {
        Item::COUNT
    }

    fn apply(&self, count: &mut i64) -> Result<(), Refused> {
        *count += 2;
        Ok(())
    }
}

fn add(tx: &Tx<'_, Mvto>, items: &Items, summand: i64) -> Result<(), Abort> {
    items.update(tx, 1, Item::COUNT.wrapping_add(summand))
}

#[test]
fn total_updaters_are_deferred_among_other_updates() {
    let mut scene = scene();
    let Scene { items, first, .. } = &mut scene;
    run(first, |tx| items.update_with(tx, 1, Linear(3, 1)));
    // The count becomes 31, 62, 63, 126.
    run(first, |tx| {
        items.update_with(tx, 1, Double)?;
        add(tx, items, 1)?;
        items.update_with(tx, 1, Double)
    });
    run(first, |tx| items.update(tx, 1, Item::SMALL.wrapping_sub(1)));
    assert_eq!(chain(items), [true, true, true, false]);
    assert_eq!(scene.row(), Item { count: 126, small: 6, ..Item::new(1, 0) });
    let Scene { items, first, .. } = &mut scene;
    assert_eq!(chain(items), [false, true, true, false], "only what was read has become a row");
    // An update that may be refused is not stored as a delta. Then the other updates of the same
    // unit are not stored as deltas either.
    run(first, |tx| {
        items.update_with(tx, 1, Double)?;
        items.update(tx, 1, Item::COUNT.sub(2).at_least(0))
    });
    assert_eq!(chain(items)[..2], [false, false]);
    run(first, |tx| items.update_with(tx, 1, Hesitant));
    assert_eq!(chain(items)[..2], [false, false]);
    assert_eq!(scene.row(), Item { count: 252, small: 6, flag: true, ..Item::new(1, 0) });
}

#[test]
fn updates_without_room_are_applied_by_the_commit() {
    let mut scene = scene();
    let Scene { items, first, .. } = &mut scene;
    // The unit has two words, and its blocks have two spare words.
    run(first, |tx| items.update_with(tx, 1, Sum([1, 2, 3])));
    assert_eq!(chain(items), [true, false]);
    run(first, |tx| items.update_with(tx, 1, Sum([1, 2, 3, 4])));
    assert_eq!(chain(items), [false, false, false]);
    run(first, |tx| {
        items.update_with(tx, 1, Sum([1, 2]))?;
        add(tx, items, 1)
    });
    assert_eq!(chain(items), [false, false, false, false]);
    assert_eq!(scene.row().count, 10 + 6 + 10 + 4);
}

#[test]
fn total_updaters_apply_in_the_order_of_their_timestamps_however_they_are_linked() {
    for point in [Point::Unlocked, Point::Locked, Point::Validated] {
        let Scene { db, items, mut first, mut second } = scene();
        // The first session has drawn its timestamp. The second session draws a later one and
        // commits before the first. Both transactions succeed without a retry.
        let rows = items.clone();
        let meanwhile = move || {
            run(&mut second, |tx| rows.update_with(tx, 1, Linear(3, 1)));
            run(&mut second, |tx| add(tx, &rows, 5));
        };
        acting(point, meanwhile, || run(&mut first, |tx| items.update_with(tx, 1, Double)));
        assert_eq!(chain(&items), [true, true, true, false]);
        let count = db.run(|tx| items.read(tx, 1, Item::COUNT));
        assert_eq!(count, Ok(3 * 20 + 1 + 5), "{point:?}");
    }
}

#[test]
fn a_transaction_sees_its_deferred_updates() {
    let mut scene = scene();
    let Scene { items, first, .. } = &mut scene;
    let read = |tx: &Tx<'_, Mvto>| items.read(tx, 1, (Item::COUNT, Item::FLAG));
    run(first, |tx| {
        items.update_with(tx, 1, Double)?;
        assert_eq!(read(tx), Ok((20, true)));
        add(tx, items, 1)?;
        assert_eq!(read(tx), Ok((21, true)));
        items.update_with(tx, 1, Double)?;
        assert_eq!(read(tx), Ok((42, false)));
        Ok(())
    });
    assert_eq!(chain(items), [true, false]);
    assert_eq!(scene.row(), Item::new(1, 42));
    // A replacement of the row needs no version below it, even if the version below is a deferred
    // update.
    let Scene { items, first, .. } = &mut scene;
    run(first, |tx| items.update_with(tx, 1, Sum([1, 2, 3])));
    run(first, |tx| {
        items.put(tx, Item::new(1, 7))?;
        items.update_with(tx, 1, Double)
    });
    assert_eq!(chain(items)[..2], [false, true]);
    assert_eq!(scene.row(), Item { flag: true, ..Item::new(1, 14) });
}

#[test]
fn a_row_is_not_deleted_below_a_total_updater() {
    let Scene { db, items, mut first, mut second } = scene();
    let rows = items.clone();
    let delete = |tx: &Tx<'_, Mvto>| items.delete(tx, 1);
    let meanwhile = move || run(&mut second, |tx| rows.update_with(tx, 1, Double));
    assert_eq!(acting(Point::Unlocked, meanwhile, || first.with(ONCE()).run(delete)), CONFLICT);
    assert_eq!(chain(&items), [true, false]);
    run(&mut first, delete);
    assert_eq!(db.run(|tx| items.get(tx, 1, Whole)), Ok(None));
    assert_eq!(first.with(ONCE()).run(|tx| items.update_with(tx, 1, Double)), Err(Abort::NotFound));
    // The row can be inserted again, even when no version below is left.
    for _ in 0..2 {
        run(&mut first, |tx| items.put(tx, Item::new(1, 1)));
        run(&mut first, |tx| items.update_with(tx, 1, Double));
        assert_eq!(db.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(2));
        run(&mut first, delete);
        for _ in 0..5 {
            db.inner.engine.epochs.pass();
            run(&mut first, |_| Ok(()));
        }
    }
}

#[test]
fn snapshots_between_total_updaters_see_the_updates_below_them() {
    let mut scene = scene();
    let (mut snapshots, mut count) = (Vec::new(), 10);
    for round in 0..2 * DELTAS_MAX as i64 {
        let Scene { db, items, first, .. } = &mut scene;
        run(first, |tx| items.update_with(tx, 1, Linear(3, round)));
        count = 3 * count + round;
        if round % 3 == 0 {
            snapshots.push((db.snapshot(), count));
        }
    }
    let look = |scene: &Scene, snapshot: &crate::Snapshot<Mvto>| {
        snapshot.run(|tx| scene.items.read(tx, 1, Item::COUNT)).unwrap()
    };
    for (snapshot, wanted) in snapshots.iter().rev().step_by(2) {
        assert_eq!(look(&scene, snapshot), *wanted);
    }
    scene.collect();
    for (snapshot, wanted) in &snapshots {
        assert_eq!(look(&scene, snapshot), *wanted);
    }
    assert_eq!(
        chain(&scene.items).len(),
        snapshots.len() + 1,
        "what the snapshots see, and the newest"
    );
    drop(snapshots);
    scene.collect();
    assert_eq!(chain(&scene.items), [false]);
    assert_eq!(scene.row().count, count);
}

/// A row with two groups, under a key of two parts that may share a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, candide_derive::Record)]
#[record(crate = crate)]
struct Shelf {
    #[key]
    shop: u16,
    #[key]
    number: u16,
    #[group(goods)]
    goods: [u64; 6],
    #[group(state)]
    state: u64,
}

/// A function on the goods of a shelf.
trait Shelving: Copy + Send + Sync + 'static {
    fn shelve(&self, number: u16, goods: &mut [u64; 6]);
}

/// An updater that applies a [`Shelving`].
#[derive(Debug, Clone, Copy)]
struct Shelve<S>(S);

impl<S: Shelving> Updater<Shelf> for Shelve<S> {
    type Target = (KeyColumn<Shelf, u16>, Column<Shelf, [u64; 6]>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Shelf::NUMBER, Shelf::GOODS)
    }

    fn apply(&self, (number, goods): &mut (u16, [u64; 6])) -> Result<(), Refused> {
        self.0.shelve(*number, goods);
        Ok(())
    }
}

/// A function that adds the key's second part.
#[derive(Debug, Clone, Copy)]
struct Numbered;

impl Shelving for Numbered {
    fn shelve(&self, number: u16, goods: &mut [u64; 6]) {
        goods.iter_mut().for_each(|of| *of = of.wrapping_add(u64::from(number)));
    }
}

impl Shelving for [u64; 6] {
    fn shelve(&self, _: u16, goods: &mut [u64; 6]) {
        goods.iter_mut().zip(self).for_each(|(of, more)| *of = of.wrapping_mul(3) ^ more);
    }
}

/// A function whose fields have uninitialized padding between and after them.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Padded {
    last: u64,
    by: u8,
    more: u32,
    place: u16,
}

impl Shelving for Padded {
    fn shelve(&self, _: u16, goods: &mut [u64; 6]) {
        goods[usize::from(self.place)] += u64::from(self.by) * u64::from(self.more);
        goods[5] ^= self.last;
    }
}

/// A function that contains addresses.
#[derive(Debug, Clone, Copy)]
struct Pointing {
    table: &'static [u64],
    by: fn(u64) -> u64,
}

impl Shelving for Pointing {
    fn shelve(&self, _: u16, goods: &mut [u64; 6]) {
        goods
            .iter_mut()
            .zip(self.table)
            .for_each(|(of, &more)| *of = (self.by)(*of).wrapping_add(more));
    }
}

/// An updater of the other group.
#[derive(Debug, Clone, Copy)]
struct Stamp(u8);

impl Updater<Shelf> for Stamp {
    type Target = (KeyColumn<Shelf, u16>, Column<Shelf, u64>, KeyColumn<Shelf, u16>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Shelf::SHOP, Shelf::STATE, Shelf::NUMBER)
    }

    fn apply(&self, (shop, state, number): &mut (u16, u64, u16)) -> Result<(), Refused> {
        *state =
            *state << 40 | u64::from(*shop) << 24 | u64::from(*number) << 8 | u64::from(self.0);
        Ok(())
    }
}

#[test]
fn updaters_are_unchanged_by_encoding_in_words() {
    static TABLE: [u64; 3] = [5, 6, u64::MAX];
    let key = (3, 0x1234);
    let padded = Padded { last: 1 << 63, by: 0xff, more: u32::MAX, place: 4 };
    let pointing = Pointing { table: &TABLE, by: |number| number.rotate_left(9) };
    let six = [1, u64::MAX, 0, 1 << 63, 7, 0x55];
    for (splits, packs) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = Database::<Mvto>::builder()
            .manual_epochs(10)
            .timestamp_splitting(splits)
            .build()
            .unwrap();
        let options = TableOptions::default().contention_aware_keys(!packs);
        let shelves = db.table_with::<Shelf>("shelves", options).unwrap();
        assert_eq!(shelves.core().layout.packing::<(u16, u16)>().is_some(), packs);
        let mut session = db.session().unwrap();
        let mut goods = [1, 2, 3, 4, 5, 6];
        run(&mut session, |tx| {
            shelves.insert(tx, Shelf { shop: key.0, number: key.1, goods, state: 1 })
        });
        run(&mut session, |tx| shelves.update_with(tx, &key, Shelve(six)));
        run(&mut session, |tx| shelves.update_with(tx, &key, Shelve(Numbered)));
        run(&mut session, |tx| {
            shelves.update_with(tx, &key, Shelve(padded))?;
            shelves.update_with(tx, &key, Shelve(pointing))
        });
        run(&mut session, |tx| shelves.update_with(tx, &key, Stamp(0xab)));
        six.shelve(key.1, &mut goods);
        Numbered.shelve(key.1, &mut goods);
        padded.shelve(key.1, &mut goods);
        pointing.shelve(key.1, &mut goods);
        let deltas = if splits { vec![(0, 3), (1, 1)] } else { vec![(0, 4)] };
        for (group, deltas) in deltas {
            let chain = chain_of(&shelves, key, group);
            assert_eq!(
                (chain.len(), chain.iter().filter(|&&is_delta| is_delta).count()),
                (deltas + 1, deltas)
            );
        }
        let row = db.run(|tx| shelves.read(tx, &key, Whole));
        let state = 1 << 40 | 3 << 24 | 0x1234 << 8 | 0xab;
        assert_eq!(row, Ok(Shelf { shop: key.0, number: key.1, goods, state }), "{splits} {packs}");
    }
}

/// The way in which a total updater fails.
#[derive(Debug, Clone, Copy)]
enum How {
    Refuses,
    Panics,
    /// A panic whose payload panics again when it is dropped.
    PanicsTwice,
}

const HOW: [How; 3] = [How::Refuses, How::Panics, How::PanicsTwice];

/// An updater that is declared total, and always fails.
#[derive(Debug, Clone, Copy)]
struct Breaks(How);

thread_local! {
    /// The number of failures of [`Breaks`] on this thread.
    static BROKEN: Cell<usize> = const { Cell::new(0) };
}

#[derive(Debug)]
struct Deliberate;

#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new(Deliberate))
    }
}

impl Updater<Item> for Breaks {
    type Target = (Column<Item, i64>, Column<Item, u8>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Item::COUNT, Item::SMALL)
    }

    fn apply(&self, row: &mut (i64, u8)) -> Result<(), Refused> {
        BROKEN.set(BROKEN.get() + 1);
        *row = (-1, 0);
        match self.0 {
            How::Refuses => Err(Refused),
            How::Panics => resume_unwind(Box::new(Deliberate)),
            How::PanicsTwice => resume_unwind(Box::new(Bomb)),
        }
    }
}

/// The name and action of a session that applies a deferred update.
type Finder = (&'static str, fn(&mut Scene));

#[test]
fn a_total_updater_that_fails_has_no_effect_wherever_it_is_evaluated() {
    let finders: [Finder; 6] = [
        ("one who reads", |scene| assert_eq!(scene.row().count, 32)),
        ("a snapshot", |scene| {
            let read = |tx: &Tx<'_, Mvto>| scene.items.read(tx, 1, Item::COUNT);
            assert_eq!(scene.db.snapshot().run(read), Ok(32));
        }),
        ("one who has to look at the row to change it", |scene| {
            run(&mut scene.second, |tx| scene.items.update(tx, 1, Item::COUNT.sub(0).at_least(32)));
        }),
        ("one who changes what is there", |scene| {
            let Scene { items, second, .. } = scene;
            run(second, |tx| items.modify(tx, 1, Item::COUNT, |count| assert_eq!(*count, 32)));
        }),
        ("one who comes when there are many", |scene| {
            for _ in 0..DELTAS_MAX {
                run(&mut scene.second, |tx| scene.items.update_with(tx, 1, Linear(1, 0)));
            }
        }),
        ("one who collects", |scene| {
            scene.collect();
            assert_eq!(chain(&scene.items), [false]);
        }),
    ];
    for how in HOW {
        for (who, finds) in finders {
            let mut scene = scene();
            BROKEN.set(0);
            let Scene { items, first, .. } = &mut scene;
            run(first, |tx| add(tx, items, 1));
            run(first, |tx| {
                items.update_with(tx, 1, Breaks(how))?;
                add(tx, items, 5)
            });
            run(first, |tx| items.update_with(tx, 1, Double));
            assert_eq!((chain(items), BROKEN.get()), (vec![true, true, true, false], 0));
            finds(&mut scene);
            assert_eq!(BROKEN.get(), 1, "{how:?}, {who}");
            // No session holds the cell, the row is as it was before the update, and no session
            // applies the update again.
            for _ in 0..2 {
                assert_eq!(scene.row(), Item { flag: true, ..Item::new(1, 32) }, "{how:?}, {who}");
            }
            assert_eq!(BROKEN.get(), 1, "{how:?}, {who}");
            run(&mut scene.second, |tx| scene.items.update_with(tx, 1, Linear(1, 1)));
            scene.collect();
            assert_eq!(chain(&scene.items), [false]);
            assert_eq!(scene.row(), Item { flag: true, ..Item::new(1, 33) }, "{how:?}, {who}");
            assert_eq!(scene.db.memory().garbage, 0);
        }
    }
}

/// A step of a transaction.
type Step = fn(&Tx<'_, Mvto>, &Items) -> Result<(), Abort>;

#[test]
fn a_total_updater_that_fails_fails_its_uncommitted_transaction() {
    for how in [How::Refuses, How::Panics] {
        let mut scene = scene();
        let Scene { items, first, .. } = &mut scene;
        let ends: [Step; 3] = [
            // Three steps after which the update is not deferred: the transaction reads the changed
            // row, or makes an update that may fail, or has no room for another update.
            |tx, items| items.read(tx, 1, Item::COUNT).map(drop),
            |tx, items| items.update(tx, 1, Item::COUNT.add(1)),
            |tx, items| items.update_with(tx, 1, Sum([1, 2, 3])),
        ];
        for end in ends {
            let mut body = |tx: &Tx<'_, Mvto>| {
                items.update_with(tx, 1, Double)?;
                items.update_with(tx, 1, Breaks(how))?;
                end(tx, items)
            };
            assert!(catch_unwind(AssertUnwindSafe(|| first.with(ONCE()).run(&mut body))).is_err());
            assert_eq!(chain(items), [false]);
        }
        assert_eq!(scene.row(), Item::new(1, 10));
    }
}

/// A number type. One value of the type cannot be stored in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Touchy(u64);

impl Touchy {
    const MAX: Touchy = Touchy(u64::MAX);
}

impl Field for Touchy {
    const BITS: u32 = 64;
    type Buffer = [u64; 1];

    fn word(&self, _: usize) -> u64 {
        if *self == Touchy::MAX { resume_unwind(Box::new(Deliberate)) } else { self.0 }
    }

    fn from_buffer(buffer: &[u64; 1]) -> Touchy {
        Touchy(buffer[0])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, candide_derive::Record)]
#[record(crate = crate)]
struct Pair {
    #[key]
    id: u64,
    one: u64,
    other: Touchy,
}

/// An updater that changes one column, and then fails to change the other.
#[derive(Debug, Clone, Copy)]
struct Half(u64);

impl Updater<Pair> for Half {
    type Target = (Column<Pair, u64>, Column<Pair, Touchy>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Pair::ONE, Pair::OTHER)
    }

    fn apply(&self, row: &mut (u64, Touchy)) -> Result<(), Refused> {
        *row = (row.0 + self.0, Touchy::MAX);
        Ok(())
    }
}

#[test]
fn an_updater_that_fails_half_way_leaves_the_row_unchanged() {
    let db = Database::<Mvto>::builder().manual_epochs(10).build().unwrap();
    let pairs = db.table::<Pair>("pairs").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| pairs.insert(tx, Pair { id: 1, one: 1, other: Touchy(2) }));
    run(&mut session, |tx| pairs.update_with(tx, 1, Half(100)));
    run(&mut session, |tx| pairs.update(tx, 1, Pair::ONE.wrapping_add(1)));
    assert_eq!(chain_of(&pairs, 1, 0), [true, true, false]);
    let row = db.run(|tx| pairs.read(tx, 1, Whole));
    assert_eq!(row, Ok(Pair { id: 1, one: 2, other: Touchy(2) }));
}

#[test]
fn the_background_collector_survives_a_total_updater_that_fails() {
    let db = Database::<Mvto>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    for round in 1..=3 {
        for how in HOW {
            let mut session = db.session().unwrap();
            let done: Result<(), Abort> = session.run(|tx| {
                items.update_with(tx, 1, Breaks(how))?;
                items.update(tx, 1, Item::OTHER.wrapping_add(1))
            });
            assert_eq!(done, Ok(()));
            assert_eq!(session.run(|tx| items.update_with(tx, 1, Linear(1, 1))), Ok(()));
        }
        // All sessions have ended, so only the advancer collects.
        await_one_version(&db, &items);
        assert_eq!(chain(&items), [false]);
        let count = db.run(|tx| items.read(tx, 1, (Item::COUNT, Item::SMALL)));
        assert_eq!(count, Ok((3 * round, 7)));
    }
}

#[test]
fn total_updaters_of_many_threads_lose_no_update() {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 3_000;
    let db = Database::<Mvto>::builder().build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    db.run(|tx| items.insert(tx, Item::new(1, 0))).unwrap();
    let told = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut session = db.session().unwrap();
                for round in 0..ROUNDS {
                    let mut add = |breaks: bool| {
                        let added = session.run(|tx| {
                            items.update_with(tx, 1, Sum([1]))?;
                            if breaks {
                                items.update_with(tx, 1, Breaks(How::Panics))
                            } else {
                                Ok(())
                            }
                        });
                        added.unwrap();
                    };
                    // If the chain has many deltas already, the update is not deferred. Then its
                    // transaction fails and has no effect.
                    if round % 16 != 0 {
                        add(false);
                    } else if let Err(panic) = catch_unwind(AssertUnwindSafe(|| add(true))) {
                        assert!(panic.is::<Deliberate>());
                        told.fetch_add(1, Ordering::Relaxed);
                        add(false);
                    }
                    if round % 500 == 0 {
                        let seen = session.run(|tx| items.read(tx, 1, Item::COUNT));
                        assert!(seen.unwrap() > round);
                    }
                }
            });
        }
    });
    let row = db.run(|tx| items.read(tx, 1, Whole));
    assert_eq!(row, Ok(Item::new(1, THREADS * ROUNDS)));
    assert!(told.into_inner() < (THREADS * ROUNDS) as u64 / 16, "no update was deferred");
}

/// The scenes of this file also pass with timestamps from the system's clock.
#[test]
fn total_updaters_work_with_timestamps_of_the_clock() {
    let all: [fn(); 11] = [
        total_updaters_are_deferred_among_other_updates,
        updates_without_room_are_applied_by_the_commit,
        total_updaters_apply_in_the_order_of_their_timestamps_however_they_are_linked,
        a_transaction_sees_its_deferred_updates,
        a_row_is_not_deleted_below_a_total_updater,
        snapshots_between_total_updaters_see_the_updates_below_them,
        updaters_are_unchanged_by_encoding_in_words,
        a_total_updater_that_fails_has_no_effect_wherever_it_is_evaluated,
        a_total_updater_that_fails_fails_its_uncommitted_transaction,
        an_updater_that_fails_half_way_leaves_the_row_unchanged,
        the_background_collector_survives_a_total_updater_that_fails,
    ];
    by_the_clock(|| all.iter().for_each(|test| test()));
}
