//! Scenes of reads, writes, ranges and indexes.

use super::super::entries::assert_entries_match_rows;
use super::super::indexed_rows::{Filed, Parcel};
use super::super::rows::Item;
use super::stage::{Actor, Scene};
use super::values::Wind;
use crate::engine::Protocol;
use crate::protocols::Recorded;
use crate::schema::{Refused, Updater};
use crate::{Abort, Column, Table, Tx, Whole};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Transactions of every kind, drawn at random, while epochs pass.
pub(super) fn random_mix<P: Protocol>() -> Scene<P> {
    fn steps<P: Protocol>(me: &mut Actor<'_, P>) {
        let mix = me.mix();
        for _ in 0..3 {
            mix.step(&mut me.session, &mut me.random, 4);
            me.pass();
        }
    }
    // The transactions before the parts leave rows for the parts.
    Scene::new("mix").before(steps).part(steps).part(steps).part(steps).shows("burial")
}

/// Transactions move the whole count of a row to another row, which they may have to insert. A
/// thread of the scene reads for update. The sum stays the same.
pub(super) fn moves<P: Protocol>() -> Scene<P> {
    fn sum<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let sum = me.run(|tx| {
            (0..3).try_fold(0, |sum, id| Ok(sum + items.get(tx, &id, Item::COUNT)?.unwrap_or(0)))
        });
        assert_eq!(sum, 30);
    }
    fn act<P: Protocol>(me: &mut Actor<'_, P>) {
        let (items, held) = (me.items(), me.number == 1);
        for _ in 0..2 {
            let (from, to) = (me.random.below(3), me.random.below(3));
            me.run(|tx| {
                let get = |id| {
                    let row = items.find(tx, id)?;
                    if held { row.get_for_update(Item::COUNT) } else { row.get(Item::COUNT) }
                };
                let Some(count) = get(&from)? else { return Ok(()) };
                items.delete(tx, &from)?;
                match get(&to)? {
                    Some(_) => items.update(tx, &to, Item::COUNT.add(count)),
                    None => items.insert(tx, Item::new(to, count)),
                }
            });
            me.pass();
        }
        sum(me);
    }
    Scene::new("moves").before(|me| me.fill(0..3, 10)).part(act).part(act).part(act).after(sum)
}

/// Two rows exist, and one must stay. Each of two threads deletes its own row if both rows exist.
pub(super) fn write_skew<P: Protocol>() -> Scene<P> {
    fn take<P: Protocol>(me: &mut Actor<'_, P>) {
        let (items, own) = (me.items(), me.number - 1);
        for _ in 0..2 {
            me.run(|tx| {
                let both = items.read(tx, 0, Item::COUNT)? + items.read(tx, 1, Item::COUNT)? == 2;
                items.update(tx, &own, Item::COUNT.set(i64::from(!both)))
            });
        }
    }
    fn look<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let left =
            me.run(|tx| Ok(items.read(tx, 0, Item::COUNT)? + items.read(tx, 1, Item::COUNT)?));
        assert!(left >= 1, "both are taken");
    }
    Scene::new("write-skew")
        .before(|me| me.fill(0..2, 1))
        .part(take)
        .part(take)
        .part(look)
        .after(look)
}

/// Threads increment one row in three ways. No increment is lost.
pub(super) fn lost_update<P: Protocol>() -> Scene<P> {
    Scene::new("lost-update")
        .before(|me| me.fill(0..1, 0))
        .part(|me| {
            let items = me.items();
            (0..2).for_each(|_| me.run(|tx| items.modify(tx, 0, Item::COUNT, |count| *count += 1)));
        })
        .part(|me| {
            let items = me.items();
            for _ in 0..2 {
                me.run(|tx| {
                    let row = items.read(tx, 0, Whole)?;
                    items.put(tx, Item { count: row.count + 1, ..row })
                });
            }
        })
        .part(|me| {
            let items = me.items();
            (0..2).for_each(|_| {
                me.run(|tx| items.update(tx, 0, (Item::COUNT.add(1), Item::OTHER.add(1))))
            });
        })
        .after(|me| {
            let items = me.items();
            let row = me.run(|tx| items.read(tx, 0, Whole));
            assert_eq!((row.count, row.other), (6, 102), "an increment is lost");
        })
}

/// Three transactions each take one of two units, and record this in other rows. The transaction
/// that comes too late leaves no effect.
pub(super) fn guards<P: Protocol>() -> Scene<P> {
    fn want<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let taken = me.session.run(|tx| {
            items.update(tx, 1, Item::COUNT.add(1))?;
            items.update(tx, 0, Item::COUNT.sub(1).at_least(0))?;
            items.update(tx, 2, Item::OTHER.add(1))
        });
        match taken {
            Ok(()) => {}
            Err(Abort::Guard) => me.saw("refusal"),
            Err(abort) => panic!("{abort}"),
        }
    }
    Scene::new("guards")
        .before(|me| {
            me.fill(0..3, 0);
            let items = me.items();
            me.run(|tx| items.update(tx, 0, Item::COUNT.set(2)));
        })
        .part(want)
        .part(want)
        .part(want)
        .after(|me| {
            let items = me.items();
            let rows = me.run(|tx| {
                Ok((
                    items.read(tx, 0, Item::COUNT)?,
                    items.read(tx, 1, Item::COUNT)?,
                    items.read(tx, 2, Item::OTHER)?,
                ))
            });
            assert_eq!(rows, (0, 2, 102), "two of three");
        })
        .shows("refusal")
}

/// Reads row `held` for update and row `read` without. Writes a value that depends on both to row
/// `held`.
fn level<P: Protocol>(me: &mut Actor<'_, P>, held: u64, read: u64) {
    let items = me.items();
    me.run(|tx| {
        let mine = items.read_for_update(tx, &held, Item::OTHER)?;
        let other = items.read(tx, &read, Item::OTHER)?;
        items.update(tx, &held, Item::OTHER.set(mine.max(other) + 1))
    });
}

/// Each of two threads holds a row and reads the row that the other thread holds. There is no third
/// thread.
pub(super) fn held_skew<P: Protocol>() -> Scene<P> {
    Scene::new("held-skew")
        .before(|me| me.fill(0..2, 0))
        .part(|me| level(me, 0, 1))
        .part(|me| level(me, 1, 0))
        .after(|me| {
            let items = me.items();
            let rows =
                me.run(|tx| Ok([items.read(tx, 0, Item::OTHER)?, items.read(tx, 1, Item::OTHER)?]));
            assert_ne!(rows[0], rows[1], "the second transaction has seen the first");
        })
}

/// Transfers between rows that are read for update, in opposite orders.
pub(super) fn holders<P: Protocol>() -> Scene<P> {
    fn transfer<P: Protocol>(me: &mut Actor<'_, P>, from: u64, to: u64) {
        let items = me.items();
        me.run(|tx| {
            let count = items.read_for_update(tx, &from, Item::COUNT)?;
            items.read_for_update(tx, &to, Item::COUNT)?;
            items.update(tx, &from, Item::COUNT.set(count - 1))?;
            items.update(tx, &to, Item::COUNT.add(1))
        });
    }
    fn sum<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        let sum =
            me.run(|tx| (0..3).try_fold(0, |sum, id| Ok(sum + items.read(tx, &id, Item::COUNT)?)));
        assert_eq!(sum, 30);
    }
    Scene::new("holders")
        .before(|me| me.fill(0..3, 10))
        .part(|me| {
            transfer(me, 0, 1);
            level(me, 0, 1);
        })
        .part(|me| {
            level(me, 1, 0);
            transfer(me, 1, 0);
        })
        .part(|me| {
            transfer(me, 2, 0);
            sum(me);
        })
        .after(sum)
}

/// A transaction that finds a range empty inserts into it. Exactly one of three transactions
/// inserts.
pub(super) fn phantom<P: Protocol>() -> Scene<P> {
    const GAP: ((u8, u16), (u8, u16)) = ((1, 11), (1, 40));
    fn fill<P: Protocol>(me: &mut Actor<'_, P>) {
        let (parcels, number) = (me.parcels(), 10 * me.number as u16 + 5);
        me.run(|tx| {
            let met = match number {
                25 => parcels.scan_rev(tx, GAP.0..GAP.1, ()).next().transpose()?,
                _ => parcels.scan(tx, GAP.0..GAP.1, ()).next().transpose()?,
            };
            if met.is_none() { parcels.insert(tx, Parcel::new(1, number)) } else { Ok(()) }
        });
    }
    Scene::new("phantom")
        .before(|me| {
            let parcels = me.parcels();
            me.run(|tx| parcels.insert_many(tx, [10, 40].map(|number| Parcel::new(1, number))));
        })
        .part(fill)
        .part(fill)
        .part(fill)
        .after(|me| {
            let parcels = me.parcels();
            let rows = me.run(|tx| parcels.scan(tx, GAP.0..GAP.1, ()).count());
            assert_eq!(rows, 1, "the range was empty for one only");
        })
}

/// Inserts one of two keys, unless the other key has a row.
fn insert_unless_other<P: Protocol>(me: &mut Actor<'_, P>) {
    let (items, own) = (me.items(), me.number - 1);
    me.run(|tx| match items.get(tx, &(1 - own), Item::OTHER)? {
        None => items.insert(tx, Item::new(own, 1)),
        Some(_) => Ok(()),
    });
}

/// Asserts that exactly one of two keys has a row.
fn one_of_two<P: Protocol>(me: &mut Actor<'_, P>) {
    let items = me.items();
    let rows = me.run(|tx| Ok((items.get(tx, 0, Item::COUNT)?, items.get(tx, 1, Item::COUNT)?)));
    assert!(matches!(rows, (Some(1), None) | (None, Some(1))), "{rows:?}");
}

/// Each of two threads finds one key absent and inserts the other. There is no third thread.
pub(super) fn missed_keys<P: Protocol>() -> Scene<P> {
    Scene::new("missed-keys").part(insert_unless_other).part(insert_unless_other).after(one_of_two)
}

/// Two threads each find one key absent and insert the other. A third thread inserts and rolls
/// back.
pub(super) fn absent_keys<P: Protocol>() -> Scene<P> {
    Scene::new("absent-keys")
        .part(insert_unless_other)
        .part(insert_unless_other)
        .part(|me| {
            let items = me.items();
            let given_up = me.session.run(|tx| {
                items.insert_if_absent(tx, Item::new(1, 2))?;
                Err::<(), _>(Abort::NotFound)
            });
            assert_eq!(given_up, Err(Abort::NotFound));
        })
        .after(one_of_two)
}

/// Two threads scan a range and insert into it during the scan, which splits the leaves that they
/// have scanned. A third thread only inserts.
pub(super) fn own_split<P: Protocol>() -> Scene<P> {
    fn go_through<P: Protocol>(me: &mut Actor<'_, P>) {
        let (parcels, items, own) = (me.parcels(), me.items(), me.number);
        me.run(|tx| {
            let mut met = 0;
            for row in parcels.scan(tx, (1, 0)..(1, 100), ()) {
                let (_, number) = row?.0;
                parcels.insert_if_absent(tx, Parcel::new(1, number + own as u16))?;
                met += 1;
            }
            items.put(tx, Item::new(own, met))
        });
    }
    Scene::new("own-split")
        .before(|me| {
            let parcels = me.parcels();
            me.run(|tx| parcels.insert_many(tx, [10, 20, 30].map(|number| Parcel::new(1, number))));
        })
        .part(go_through)
        .part(go_through)
        .part(|me| {
            let parcels = me.parcels();
            me.run(|tx| parcels.insert(tx, Parcel::new(1, 55)));
        })
        .after(|me| {
            let items = me.items();
            let mut met =
                me.run(|tx| Ok([items.read(tx, 1, Item::COUNT)?, items.read(tx, 2, Item::COUNT)?]));
            met.sort_unstable();
            assert!(
                (3..=4).contains(&met[0]) && met[1] >= 2 * met[0],
                "the second transaction meets the writes of the first: {met:?}"
            );
        })
}

/// Rows are deleted one after another, and their weight is added to other rows. Meanwhile scans in
/// both directions sum the weights.
pub(super) fn delete_in_scan<P: Protocol>() -> Scene<P> {
    fn remove<P: Protocol>(me: &mut Actor<'_, P>, from: u16, to: u16) {
        let (parcels, items) = (me.parcels(), me.items());
        me.run(|tx| {
            // The delete depends on the count that the other thread has written. The other thread's
            // count depends on the existing rows.
            items.get(tx, 9, Item::COUNT)?;
            let Some(weight) = parcels.get(tx, &(1, from), Parcel::WEIGHT)? else { return Ok(()) };
            parcels.delete(tx, &(1, from))?;
            match parcels.get(tx, &(1, to), Parcel::WEIGHT)? {
                Some(_) => parcels.update(tx, &(1, to), Parcel::WEIGHT.add(weight)),
                None => parcels.insert(tx, Parcel { weight, ..Parcel::new(1, to) }),
            }
        });
    }
    fn sum<P: Protocol>(me: &mut Actor<'_, P>) {
        let (parcels, items, own) = (me.parcels(), me.items(), me.number);
        let sum = me.run(|tx| {
            let weights: Result<Vec<i64>, Abort> = match own {
                3 => parcels
                    .scan_rev(tx, .., Parcel::WEIGHT)
                    .map(|row| row.map(|row| row.1))
                    .collect(),
                _ => parcels.scan(tx, .., Parcel::WEIGHT).map(|row| row.map(|row| row.1)).collect(),
            };
            // The transaction writes, since a writing transaction is validated in another way than
            // a read-only one.
            items.put(tx, Item::new(own, 0))?;
            weights.map(|weights| weights.iter().sum::<i64>())
        });
        assert_eq!(sum, 50);
    }
    /// Writes the number of rows to item 9. Reads only a group that is never updated.
    fn count<P: Protocol>(me: &mut Actor<'_, P>) {
        let (parcels, items) = (me.parcels(), me.items());
        me.run(|tx| {
            let rows = parcels
                .scan(tx, .., Parcel::NOTE)
                .try_fold(0, |rows, row| row.map(|_| rows + 1))?;
            items.put(tx, Item::new(9, rows))
        });
    }
    Scene::new("delete-in-scan")
        .before(|me| {
            let parcels = me.parcels();
            me.run(|tx| parcels.insert_many(tx, (1..6).map(|number| Parcel::new(1, number))));
        })
        .part(|me| {
            remove(me, 2, 4);
            remove(me, 4, 7);
        })
        .part(|me| {
            count(me);
            sum(me);
        })
        .part(|me| {
            remove(me, 3, 2);
            sum(me);
        })
        .after(sum)
}

/// Two threads insert the same row with the same unique code, and delete it. An insert may fail
/// because the row exists, but never because its code is taken.
pub(super) fn twins<P: Protocol>() -> Scene<P> {
    fn turns<P: Protocol>(me: &mut Actor<'_, P>) {
        let (filed, items, own) = (me.filed(), me.items(), me.number);
        let mut left = 0;
        for _ in 0..3 {
            match me.session.run(|tx| filed.insert(tx, Parcel::new(1, 7).into())) {
                Ok(()) => left += 1,
                Err(Abort::Duplicate) => me.saw("duplicate"),
                Err(abort) => panic!("{abort}"),
            }
            left -= i64::from(me.run(|tx| filed.delete_if_present(tx, &(1, 7))));
        }
        me.run(|tx| items.insert(tx, Item::new(own, left)));
    }
    // A history does not show whether a successful insert or delete assumed that the row exists. So
    // the scene counts the rows.
    Scene::new("twins").part(turns).part(turns).shows("duplicate").after(|me| {
        let (filed, items) = (me.filed(), me.items());
        let left =
            me.run(|tx| Ok(items.read(tx, 1, Item::COUNT)? + items.read(tx, 2, Item::COUNT)?));
        let rows = me.run(|tx| filed.iter(tx, ()).try_fold(0, |rows, row| row.map(|_| rows + 1)));
        assert_eq!(left, rows, "rows that were inserted and not deleted");
    })
}

/// One transaction changes the unique code of a row. Meanwhile other transactions look up a code,
/// find the row that has it, and insert a new row with the same code.
pub(super) fn indexes<P: Protocol>() -> Scene<P> {
    Scene::new("indexes")
        .before(|me| {
            let filed = me.filed();
            me.run(|tx| filed.insert_many(tx, (0..2).map(|number| Parcel::new(1, number).into())));
        })
        .part(|me| {
            let (filed, items) = (me.filed(), me.items());
            let changed = me.session.run(|tx| {
                items.get(tx, 0, Item::COUNT)?;
                filed.modify(tx, &(1, 0), (Filed::CODE, Filed::SHELF), |columns| *columns = (5, 2))
            });
            assert!(matches!(changed, Ok(()) | Err(Abort::NotUnique)), "{changed:?}");
            me.run(|tx| filed.delete_if_present(tx, &(1, 1)));
        })
        .part(|me| {
            let (filed, items) = (me.filed(), me.items());
            me.run(|tx| {
                let note = filed.index(Filed::BY_CODE).get(tx, 1_000, Filed::NOTE)?;
                items.put(tx, Item::new(0, i64::from(note.is_some())))
            });
            let inserted = me
                .session
                .run(|tx| filed.insert(tx, Filed { code: 5, ..Parcel::new(1, 7).into() }));
            assert!(matches!(inserted, Ok(()) | Err(Abort::NotUnique)), "{inserted:?}");
            if inserted.is_err() {
                me.saw("second of a code");
            }
        })
        .part(|me| {
            let (filed, items) = (me.filed(), me.items());
            let by_place = filed.index(Filed::BY_PLACE);
            me.run(|tx| {
                let rows = by_place
                    .rows(tx, &(1, 0), Filed::WEIGHT)
                    .try_fold(0, |rows, row| row.map(|_| rows + 1))?;
                items.put(tx, Item::new(0, rows))
            });
            let code = me.run(|tx| match filed.index(Filed::BY_CODE).find(tx, 5)? {
                Some(row) => row.get(Filed::CODE),
                None => Ok(None),
            });
            assert!(code.is_none_or(|code| code == 5), "{code:?}");
        })
        .after(|me| {
            let filed = me.filed();
            assert_entries_match_rows(&mut me.session, &filed);
        })
        .shows("second of a code")
}

/// An updater that is declared total, but panics if the count is even.
#[derive(Debug, Clone, Copy)]
struct Breaks;

/// The payload of that panic.
#[derive(Debug)]
struct Deliberate;

impl Updater<Item> for Breaks {
    type Target = (Column<Item, i64>, Column<Item, u8>);
    const TOTAL: bool = true;

    fn target(&self) -> Self::Target {
        (Item::COUNT, Item::SMALL)
    }

    fn apply(&self, (count, small): &mut (i64, u8)) -> Result<(), Refused> {
        let is_even = *count % 2 == 0;
        (*count, *small) = (*count + 1, *small ^ 1);
        if is_even { resume_unwind(Box::new(Deliberate)) } else { Ok(()) }
    }
}

/// Two rows must always have equal contents. Each transaction makes the same update on both. The
/// updates are total, so they may be deferred, but they do not commute. One updater is declared
/// total and panics. Meanwhile the rows are deleted, inserted and read, and garbage is collected.
pub(super) fn put_off<P: Protocol>() -> Scene<P> {
    type Change<P> = fn(&Table<Item, Recorded<P>>, &Tx<'_, Recorded<P>>, u64) -> Result<(), Abort>;
    fn change<P: Protocol>(me: &mut Actor<'_, P>, change: Change<P>) {
        let items = me.items();
        let changed = me.session.run(|tx| (0..2).try_for_each(|id| change(&items, tx, id)));
        assert!(matches!(changed, Ok(()) | Err(Abort::NotFound)), "{changed:?}");
    }
    Scene::new("put-off")
        .before(|me| me.fill(0..2, 10))
        .part(|me| {
            for _ in 0..3 {
                change(me, |items, tx, id| items.update(tx, &id, Item::COUNT.wrapping_add(1)));
            }
            me.advance();
        })
        .part(|me| {
            change(me, |items, tx, id| items.update(tx, &id, Item::COUNT.set(5)));
            change(me, |items, tx, id| {
                items.update(tx, &id, (Item::COUNT.max(6), Item::SMALL.wrapping_add(200)))
            });
            change(me, |items, tx, id| items.modify(tx, &id, Item::COUNT, |count| *count *= 2));
            let broken = || change(me, |items, tx, id| items.update_with(tx, &id, Breaks));
            if let Err(panic) = catch_unwind(AssertUnwindSafe(broken))
                && !panic.is::<Deliberate>()
            {
                resume_unwind(panic);
            }
            change(me, |items, tx, id| items.update_with(tx, &id, Wind(2)));
        })
        .part(|me| {
            change(me, |items, tx, id| items.delete(tx, &id));
            me.advance();
            change(me, |items, tx, id| items.put(tx, Item::new(id, 7)));
        })
        .part(|me| {
            let items = me.items();
            for _ in 0..2 {
                let rows = me.run(|tx| Ok([items.get(tx, 0, Whole)?, items.get(tx, 1, Whole)?]));
                let [one, other] = rows.map(|row| row.map(|row| (row.count, row.small)));
                assert_eq!(one, other);
            }
        })
        .after(|me| {
            let items = me.items();
            let rows =
                me.run(|tx| Ok([items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?]));
            assert_eq!(rows[0], rows[1]);
        })
}

/// A counter is read while total updates change it. No update is lost.
pub(super) fn counters<P: Protocol>() -> Scene<P> {
    fn count<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        me.run(|tx| items.update(tx, 0, Item::COUNT.wrapping_add(1)));
        let seen = me.run(|tx| items.read(tx, 0, Item::COUNT));
        assert!((1..=3).contains(&seen), "{seen}");
    }
    Scene::new("counters").before(|me| me.fill(0..1, 0)).part(count).part(count).part(count).after(
        |me| {
            let items = me.items();
            assert_eq!(me.run(|tx| items.read(tx, 0, Item::COUNT)), 3);
        },
    )
}

/// A row is deleted while another transaction updates it blindly.
pub(super) fn swept<P: Protocol>() -> Scene<P> {
    Scene::new("swept")
        .before(|me| me.fill(0..1, 0))
        .part(|me| {
            let items = me.items();
            let updated = me.session.run(|tx| items.update(tx, 0, Item::COUNT.wrapping_add(1)));
            assert!(matches!(updated, Ok(()) | Err(Abort::NotFound)), "{updated:?}");
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| items.delete(tx, 0));
        })
        .after(|me| {
            let items = me.items();
            assert_eq!(me.run(|tx| items.get(tx, 0, Item::COUNT)), None);
        })
}
