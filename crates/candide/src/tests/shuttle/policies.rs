//! Scenes of locks by policy. The seed of a schedule determines the policy.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::Protocol;
use crate::{Abort, Policies, Policy};

/// The number of policies, and of tables of which each has another one.
const KINDS: u64 = Policy::ALL.len() as u64;

fn locking() -> Vec<Policies> {
    Policy::ALL.into_iter().filter(|policy| policy.locks()).map(Policies::of).collect()
}

/// Transactions use tables of all policies.
pub(super) fn lock_kinds<P: Protocol>() -> Scene<P> {
    fn work<P: Protocol>(me: &mut Actor<'_, P>) {
        let tables = me.kinds();
        for _ in 0..2 {
            let steps = [(); 3].map(|()| (me.random.below(5), me.random.below(KINDS) as usize));
            me.run(|tx| {
                steps.iter().try_for_each(|&(what, table)| {
                    let table = &tables[table];
                    match what {
                        0 => table.read(tx, &0, Item::COUNT).map(drop),
                        1 => table.update(tx, &0, Item::COUNT.add(1)),
                        2 => table.modify(tx, &0, Item::COUNT, |count| *count += 1),
                        3 => {
                            let count = table.read(tx, &0, Item::COUNT)?;
                            table.update(tx, &0, Item::COUNT.set(count + 1))
                        }
                        _ => {
                            table.read_for_update(tx, &0, Item::COUNT)?;
                            table.update(tx, &0, Item::COUNT.add(1))
                        }
                    }
                })
            });
        }
    }
    Scene::new("lock-kinds")
        .under(vec![Policies::mixed()])
        .before(|me| {
            let tables = me.kinds();
            me.run(|tx| tables.iter().try_for_each(|table| table.insert(tx, Item::new(0, 0))));
        })
        .part(work)
        .part(work)
        .part(work)
        .after(|me| me.expect_free())
        .shows("lock")
        .shows("lock awaited")
}

/// Two transactions read a row, and then write it.
pub(super) fn upgraders<P: Protocol>() -> Scene<P> {
    fn increment<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            me.run(|tx| {
                let count = items.read(tx, &0, Item::COUNT)?;
                items.update(tx, &0, Item::COUNT.set(count + 1))
            });
        }
    }
    Scene::new("upgraders")
        .under(locking())
        .before(|me| me.fill(0..1, 0))
        .part(increment)
        .part(increment)
        .after(|me| {
            let items = me.items();
            assert_eq!(me.run(|tx| items.read(tx, &0, Item::COUNT)), 4, "an increment is lost");
            me.expect_free();
        })
        .shows("lock")
        .shows("lock awaited")
        .shows("lock refused")
}

/// Each of three transactions writes a row and then uses the next one's.
pub(super) fn three_cycle<P: Protocol>() -> Scene<P> {
    fn step<P: Protocol>(me: &mut Actor<'_, P>) {
        let (items, own, next) = (me.items(), me.number - 1, me.number % 3);
        me.run(|tx| {
            items.update(tx, &own, Item::COUNT.add(1))?;
            let count = items.read(tx, &next, Item::COUNT)?;
            items.update(tx, &next, Item::COUNT.set(count + 1))
        });
    }
    Scene::new("three-cycle")
        .under(vec![
            Policy::WaitDie.into(),
            Policy::Dreadlock.into(),
            Policy::Swiss.into(),
            Policies::of(Policy::Dreadlock).with("counters", Policy::WaitDie),
        ])
        .before(|me| me.fill(0..3, 0))
        .part(step)
        .part(step)
        .part(step)
        .after(|me| {
            let items = me.items();
            let counts = me.run(|tx| {
                (0..3).map(|id| items.read(tx, &id, Item::COUNT)).collect::<Result<Vec<_>, Abort>>()
            });
            assert_eq!(counts, [2, 2, 2]);
            me.expect_free();
        })
        .shows("lock awaited")
        .shows("lock refused")
}

/// A transaction that has written much asks another one to abort, whose session may have begun the
/// next transaction. That one meets no other, so it commits at once.
pub(super) fn killed_late<P: Protocol>() -> Scene<P> {
    const FIRST: u64 = 20;
    const TURNS: u64 = 8;
    Scene::peaceful("killed-late")
        .under(vec![Policy::Swiss.into()])
        .before(|me| {
            me.fill(0..11, 0);
            me.fill(FIRST..FIRST + TURNS, 0);
        })
        .part(|me| {
            let items = me.items();
            for own in FIRST..FIRST + TURNS {
                me.run(|tx| items.update(tx, &0, Item::COUNT.add(1)));
                me.run(|tx| {
                    assert_eq!(tx.attempt(), 1, "the request was for the transaction before");
                    items.update(tx, &own, Item::COUNT.add(1))
                });
            }
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| (0..11).rev().try_for_each(|id| items.update(tx, &id, Item::COUNT.add(1))));
        })
        .after(|me| {
            let items = me.items();
            assert_eq!(me.run(|tx| items.read(tx, &0, Item::COUNT)), TURNS as i64 + 1);
            me.expect_free();
        })
        .shows("lock awaited")
        .shows("kill")
}
