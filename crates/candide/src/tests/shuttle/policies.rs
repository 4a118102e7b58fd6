//! Scenes of locks by policy. The seed of a schedule determines the policy.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::Abort;
use crate::engine::Protocol;
use crate::policy::{MoccOptions, Policies, Policy};

/// The number of policies, and of the tables with one policy each.
const KINDS: u64 = Policy::ALL.len() as u64;

fn locking() -> Vec<Policies> {
    Policy::ALL.into_iter().filter(|policy| policy.locks()).map(Policies::of).collect()
}

/// Returns the policies that learn from conflicts, with both kinds of locks. Under `mocc`, rows are
/// hot from temperature `threshold` on.
fn learning(threshold: u8) -> Vec<Policies> {
    let options = MoccOptions::new().threshold(threshold);
    let of = |policy: Policy| {
        [false, true].map(|queues| Policies::of(policy).mocc(options.queue_locks(queues)))
    };
    [of(Policy::Mocc), of(Policy::Hybrid)].concat()
}

/// Returns `mocc` with both kinds of locks, under which all rows are hot.
fn hot() -> Vec<Policies> {
    learning(0)[..2].to_vec()
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
                        0 => table.read(tx, 0, Item::COUNT).map(drop),
                        1 => table.update(tx, 0, Item::COUNT.add(1)),
                        2 => table.modify(tx, 0, Item::COUNT, |count| *count += 1),
                        3 => {
                            let count = table.read(tx, 0, Item::COUNT)?;
                            table.update(tx, 0, Item::COUNT.set(count + 1))
                        }
                        _ => {
                            table.read_for_update(tx, 0, Item::COUNT)?;
                            table.update(tx, 0, Item::COUNT.add(1))
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
                let count = items.read(tx, 0, Item::COUNT)?;
                items.update(tx, 0, Item::COUNT.set(count + 1))
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
            assert_eq!(me.run(|tx| items.read(tx, 0, Item::COUNT)), 4, "an increment is lost");
            me.expect_free();
        })
        .shows("lock")
        .shows("lock awaited")
        .shows("lock refused")
}

/// Three transactions each write a row, and then use the row of the next transaction.
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

/// A transaction that has written much requests the abort of another one, whose session may have
/// begun the next transaction. That transaction meets no other, so it commits at once.
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
                me.run(|tx| items.update(tx, 0, Item::COUNT.add(1)));
                me.run(|tx| {
                    assert_eq!(
                        tx.attempt_number(),
                        1,
                        "the request was for the transaction before"
                    );
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
            assert_eq!(me.run(|tx| items.read(tx, 0, Item::COUNT)), TURNS as i64 + 1);
            me.expect_free();
        })
        .shows("lock awaited")
        .shows("kill")
}

/// Each of two transactions reads the row that the other one writes. Both rows are hot.
pub(super) fn hot_skew<P: Protocol>() -> Scene<P> {
    fn copy<P: Protocol>(me: &mut Actor<'_, P>) {
        let (items, from) = (me.items(), me.number - 1);
        me.run(|tx| {
            let count = items.read(tx, &from, Item::COUNT)?;
            items.update(tx, &(1 - from), Item::COUNT.set(count + 1))
        });
    }
    let unreliable = MoccOptions::new().threshold(0).unreliable();
    let policies = hot().into_iter().chain([Policies::of(Policy::Mocc).mocc(unreliable)]);
    Scene::new("hot-skew")
        .under(policies.collect())
        .before(|me| me.fill(0..2, 0))
        .part(copy)
        .part(copy)
        .after(|me| {
            let items = me.items();
            let counts =
                me.run(|tx| Ok([items.read(tx, 0, Item::COUNT)?, items.read(tx, 1, Item::COUNT)?]));
            assert!([[1, 2], [2, 1]].contains(&counts), "{counts:?}");
            me.expect_free();
        })
        .shows("lock")
        .shows("lock awaited")
}

/// Three threads move counts between rows that become hot, or whose transactions lock them after a
/// conflict.
pub(super) fn hot_transfer<P: Protocol>() -> Scene<P> {
    fn transfer<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            let (from, to) = (me.random.below(3), me.random.below(3));
            me.run(|tx| {
                let count = items.read(tx, &from, Item::COUNT)?;
                items.update(tx, &from, Item::COUNT.set(count - 1))?;
                let count = items.read(tx, &to, Item::COUNT)?;
                items.update(tx, &to, Item::COUNT.set(count + 1))
            });
        }
    }
    Scene::new("hot-transfer")
        .under([learning(0), learning(1)].concat())
        .before(|me| me.fill(0..3, 0))
        .part(transfer)
        .part(transfer)
        .part(transfer)
        .after(|me| {
            let items = me.items();
            let sum = me.run(|tx| {
                (0..3).try_fold(0, |sum, id| Ok(sum + items.read(tx, &id, Item::COUNT)?))
            });
            assert_eq!(sum, 0);
            me.expect_free();
        })
        .shows("lock awaited")
        .shows("lock ahead")
}

/// A row of a retrospective lock list is deleted, and its memory is used for other rows.
pub(super) fn list_gone<P: Protocol>() -> Scene<P> {
    Scene::new("list-gone")
        .under(learning(1))
        .before(|me| me.fill(0..3, 0))
        .part(|me| {
            let items = me.items();
            for _ in 0..2 {
                me.run(|tx| {
                    let count = items.get(tx, 0, Item::COUNT)?.unwrap_or(0);
                    let other = items.read(tx, 1, Item::COUNT)?;
                    items.update(tx, 2, Item::COUNT.set(count + other))
                });
            }
        })
        .part(|me| {
            let items = me.items();
            me.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
            me.run(|tx| items.delete(tx, 0));
            me.run(|tx| items.insert(tx, Item::new(7, 5)));
            me.run(|tx| items.update(tx, 1, Item::COUNT.add(1)));
            me.run(|tx| items.insert(tx, Item::new(0, 9)));
        })
        .part(|me| {
            let items = me.items();
            for _ in 0..2 {
                me.run(|tx| {
                    let count = items.read(tx, 2, Item::COUNT)?;
                    items.update(tx, 1, Item::COUNT.set(count))
                });
            }
        })
        .after(|me| me.expect_free())
        .shows("lock ahead")
}

/// Two transactions lock two hot rows in opposite orders.
pub(super) fn canonical<P: Protocol>() -> Scene<P> {
    fn lock_both<P: Protocol>(me: &mut Actor<'_, P>) {
        let (items, first) = (me.items(), me.number - 1);
        me.run(|tx| {
            items.read(tx, &first, Item::COUNT)?;
            items.read_for_update(tx, &(1 - first), Item::COUNT)?;
            items.update(tx, &(1 - first), Item::COUNT.add(1))
        });
    }
    Scene::new("canonical")
        .under(hot())
        .before(|me| me.fill(0..2, 0))
        .part(lock_both)
        .part(lock_both)
        .after(|me| me.expect_free())
        .shows("lock awaited")
        .shows("order restored")
}

/// Three threads change two rows by steps, and by transactions that read or fail.
pub(super) fn chains<P: Protocol>() -> Scene<P> {
    fn work<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            let (what, first) = (me.random.below(6), me.random.below(2));
            let both = [first, 1 - first];
            let ended = me.session.run(|tx| {
                let add = |id: u64, count: i64| {
                    let step = move |present: &mut i64, ()| *present += count;
                    items.defer(tx, id, Item::COUNT, (), step).map(drop)
                };
                match what {
                    0 | 1 => both.into_iter().try_for_each(|id| add(id, 1)),
                    2 => add(first, 1),
                    3 => {
                        both.into_iter().try_for_each(|id| add(id, 5))?;
                        items.update(tx, first, Item::COUNT.sub(1_000).at_least(0))
                    }
                    4 => {
                        let count = items.read(tx, first, Item::COUNT)?;
                        items.update(tx, first, Item::COUNT.set(count + 1))
                    }
                    _ => {
                        items.read(tx, first, Item::COUNT)?;
                        add(1 - first, 1)
                    }
                }
            });
            assert_eq!(ended, if what == 3 { Err(Abort::Guard) } else { Ok(()) });
        }
    }
    Scene::new("chains")
        .under(vec![Policy::Pipelined.into()])
        .before(|me| me.fill(0..2, 0))
        .part(work)
        .part(work)
        .part(work)
        .after(|me| me.expect_free())
        .shows("lock awaited")
}
