//! The examples in the documentation of the protocols, run step by step.

use super::rows::Item;
use super::two_sessions::once;
use crate::engine::Protocol;
use crate::protocols::{Exclusion, Mvcc, Mvto, Occ, Serial, TicToc};
use crate::sync::{Point, with_hook};
use crate::{Abort, Database, Session, Table, Tx};

/// The keys of the examples' rows x, y and z. Row z does not exist at first.
const X: u64 = 1;
const Y: u64 = 2;
const Z: u64 = 3;

/// Rows x and y, whose counts are zero, and the sessions of two transactions.
struct Scene<P: Protocol> {
    items: Table<Item, P>,
    first: Session<P>,
    second: Session<P>,
}

fn scene<P: Protocol>(policy: P::Policy) -> Scene<P> {
    let db = Database::<P>::builder().policy(policy).manual_epochs(1).build().unwrap();
    let items = db.table::<Item>("items").unwrap();
    let (mut first, second) = (db.session().unwrap(), db.session().unwrap());
    once(&mut first, |tx| items.insert_many(tx, [Item::new(X, 0), Item::new(Y, 0)])).unwrap();
    Scene { items, first, second }
}

impl<P: Protocol> Scene<P> {
    /// Runs one attempt of a transaction, and `other` between its two halves.
    fn overtaken(
        &mut self,
        before: impl Fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>,
        other: impl Fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>,
        after: impl Fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        let Scene { items, first, second } = self;
        once(first, |tx| {
            before(items, tx)?;
            assert_eq!(once(second, |tx| other(items, tx)), Ok(()));
            after(items, tx)
        })
    }

    fn count(&mut self, id: u64) -> Option<i64> {
        once(&mut self.first, |tx| self.items.get(tx, &id, Item::COUNT)).unwrap()
    }
}

fn reads<P: Protocol>(
    id: u64,
    count: i64,
) -> impl Fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort> {
    move |items, tx| {
        assert_eq!(items.read(tx, &id, Item::COUNT)?, count);
        Ok(())
    }
}

fn sets<P: Protocol>(
    id: u64,
    count: i64,
) -> impl Fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort> {
    move |items, tx| items.update(tx, &id, Item::COUNT.set(count))
}

/// Reads row `read`, and then sets row `set`.
fn skews<P: Protocol>(
    read: u64,
    set: u64,
) -> impl Fn(&Table<Item, P>, &Tx<'_, P>) -> Result<(), Abort> {
    move |items, tx| {
        items.read(tx, &read, Item::COUNT)?;
        items.update(tx, &set, Item::COUNT.set(1))
    }
}

#[test]
fn under_occ_validation_finds_a_write_skew() {
    let mut scene = scene::<Occ>(Default::default());
    let ended = scene.overtaken(reads(X, 0), skews(Y, X), sets(Y, 1));
    assert_eq!(
        (ended, scene.count(X), scene.count(Y)),
        (Err(Abort::ReadChanged), Some(1), Some(0))
    );
}

#[test]
fn under_tictoc_a_transaction_commits_before_one_that_has_replaced_what_it_read() {
    for is_y_read in [false, true] {
        let mut scene = scene::<TicToc>(());
        for count in [1, 2] {
            once(&mut scene.first, |tx| sets(X, count)(&scene.items, tx)).unwrap();
        }
        if is_y_read {
            // This transaction reads y at the timestamp of x, so that y is valid until then.
            let both = |tx: &Tx<'_, TicToc>| {
                reads(X, 2)(&scene.items, tx)?;
                reads(Y, 0)(&scene.items, tx)
            };
            once(&mut scene.first, both).unwrap();
        }
        let ended = scene.overtaken(reads(X, 2), sets(X, 3), sets(Y, 1));
        assert_eq!(ended, if is_y_read { Err(Abort::ReadChanged) } else { Ok(()) });
        assert_eq!((scene.count(X), scene.count(Y)), (Some(3), Some(i64::from(!is_y_read))));
    }
    // Under a protocol in commit order, the transaction fails in either case.
    let mut scene = scene::<Occ>(Default::default());
    let ended = scene.overtaken(reads(X, 0), sets(X, 3), sets(Y, 1));
    assert_eq!(ended, Err(Abort::ReadChanged));
}

#[test]
fn under_mvcc_old_versions_are_read_by_readers_and_not_by_writers() {
    let sets_both = |items: &Table<Item, Mvcc>, tx: &Tx<'_, Mvcc>| {
        sets(X, 1)(items, tx)?;
        sets(Y, 1)(items, tx)
    };
    let mut scene = scene::<Mvcc>(());
    assert_eq!(scene.overtaken(reads(X, 0), sets_both, reads(Y, 0)), Ok(()));
    let ended = scene.overtaken(reads(X, 1), sets(Y, 2), |items, tx| {
        reads(Y, 2)(items, tx)?;
        sets(X, 3)(items, tx)
    });
    assert_eq!(ended, Ok(()), "what it has read is still the newest, so its time moves on");
    let ended = scene.overtaken(reads(X, 3), sets_both, |items, tx| {
        reads(Y, 2)(items, tx)?;
        sets(X, 4)(items, tx)
    });
    assert_eq!((ended, scene.count(X)), (Err(Abort::ReadChanged), Some(1)));
}

#[test]
fn under_mvto_no_version_is_inserted_below_a_later_read() {
    let Scene { items, mut first, mut second } = scene::<Mvto>(());
    let table = items.clone();
    let mut read = Some(move || once(&mut second, |tx| reads(X, 0)(&table, tx)).unwrap());
    let reads_when_drawn = move |point| {
        if point == Point::Unlocked
            && let Some(mut read) = read.take()
        {
            read();
        }
    };
    let ended = with_hook(reads_when_drawn, || once(&mut first, |tx| sets(X, 1)(&items, tx)));
    assert_eq!(ended, Err(Abort::ReadChanged));
    once(&mut first, |tx| reads(X, 0)(&items, tx)).unwrap();
}

#[test]
fn under_serial_an_error_undoes_what_was_written_in_place() {
    let Scene { items, mut first, mut second } = scene::<Serial>(Exclusion::GlobalLock);
    let ended = once(&mut first, |tx| {
        sets(X, 1)(&items, tx)?;
        items.insert(tx, Item::new(Z, 1))?;
        reads(X, 1)(&items, tx)?;
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!(ended, Err(Abort::NotFound));
    let seen = once(&mut second, |tx| {
        reads(X, 0)(&items, tx)?;
        items.get(tx, &Z, Item::COUNT)
    });
    assert_eq!(seen, Ok(None));
}
