//! Tests of observations of ranges.

use crate::engine::Protocol;
use crate::objects::TCounter;
use crate::protocols::Occ;
use crate::sync::{Point, with_hook};
use crate::tests::properties;
use crate::tests::rows::Item;
use crate::tests::transactions::{CONFLICT, ONCE};
use crate::tests::two_sessions::{Scene, scene};
use crate::{Abort, Database, RunOptions, Session, Tx};
use std::cell::Cell;
use std::rc::Rc;

/// Returns whether the present protocol lets an observation of a range hold over changes.
fn observes_ranges<P: Protocol>() -> bool {
    properties::<P>().name == Occ::NAME
}

/// Three counters of one, and two sessions, in a database whose epochs do not pass by themselves.
struct Counters<P: Protocol> {
    x: TCounter<P>,
    y: TCounter<P>,
    z: TCounter<P>,
    first: Session<P>,
    second: Session<P>,
}

fn counters<P: Protocol>(opaque: bool) -> Counters<P> {
    let db = Database::<P>::builder().manual_epochs(1).opaque(opaque).build().unwrap();
    let [x, y, z] = [(); 3].map(|()| TCounter::new(&db).unwrap());
    db.run(|tx| [&x, &y, &z].into_iter().try_for_each(|counter| counter.set(tx, 1))).unwrap();
    let (first, second) = (db.session().unwrap(), db.session().unwrap());
    Counters { x, y, z, first, second }
}

protocol_tests!(overlapping: a_change_within_the_range_does_not_conflict_under_occ);
fn a_change_within_the_range_does_not_conflict_under_occ<P: Protocol>() {
    for number in 0..8 {
        let [opaque, writes, reads] = [1, 2, 4].map(|bit| number & bit != 0);
        let Counters { x, y, z, mut first, mut second } = counters::<P>(opaque);
        let outer = first.with(ONCE()).run(|tx| {
            assert!(x.at_least(tx, 1)?);
            second.with(ONCE()).run(|tx| {
                x.add(tx, 5)?;
                y.add(tx, 1)
            })?;
            if reads {
                // The view moves on to the commit of the second session.
                y.get(tx)?;
            }
            second.with(ONCE()).run(|tx| x.sub(tx, 3))?;
            if writes { z.add(tx, 1) } else { Ok(()) }
        });
        if observes_ranges::<P>() {
            assert_eq!(outer, Ok(()), "opaque: {opaque}, writes: {writes}, reads: {reads}");
            assert_eq!(first.run(|tx| x.get(tx)), Ok(3));
        }
        let has_written = first.run(|tx| Ok(z.get(tx)? == 2)).unwrap();
        assert_eq!(has_written, writes && outer.is_ok(), "{}: {outer:?}", P::NAME);
    }
}

protocol_tests!(overlapping: a_change_of_the_answer_conflicts);
fn a_change_of_the_answer_conflicts<P: Protocol>() {
    for is_true in [true, false] {
        let Counters { x, y, mut first, mut second, .. } = counters::<P>(true);
        let bound = if is_true { 1 } else { 2 };
        let outer = first.with(ONCE()).run(|tx| {
            assert_eq!(x.at_least(tx, bound)?, is_true);
            second.with(ONCE()).run(|tx| {
                x.set(tx, if is_true { 0 } else { 2 })?;
                // So the first session's write comes later, and its answer must come before.
                y.get(tx).map(|_| ())
            })?;
            y.add(tx, 1)
        });
        let now = first.run(|tx| Ok((x.get(tx)?, y.get(tx)?))).unwrap();
        let both = now.0 != 1 && now.1 == 2;
        assert!(!both && outer.is_ok() == (now.1 == 2), "{}: {outer:?} {now:?}", P::NAME);
        if observes_ranges::<P>() {
            assert_eq!((outer, now.0 == 1), (CONFLICT, false));
        }
    }
}

protocol_tests!(overlapping: write_skew_by_ranges_of_two_counters_fails);
/// Each of two transactions finds that both counters are one, and takes one of them.
fn write_skew_by_ranges_of_two_counters_fails<P: Protocol>() {
    let Counters { x, y, mut first, mut second, .. } = counters::<P>(true);
    let take = |tx: &Tx<'_, P>, of: &TCounter<P>| {
        if x.at_least(tx, 1)? && y.at_least(tx, 1)? { of.sub(tx, 1) } else { Ok(()) }
    };
    let mut inner = Ok(());
    let outer = first.with(ONCE()).run(|tx| {
        take(tx, &x)?;
        inner = second.with(ONCE()).run(|tx| take(tx, &y));
        Ok(())
    });
    let left = first.run(|tx| Ok(x.get(tx)? + y.get(tx)?)).unwrap();
    assert!(left >= 1, "{}: {outer:?} {inner:?} {left}", P::NAME);
}

/// A commit tests its two ranges one after the other. In between, another transaction falsifies the
/// first and makes the second true, which was false when the commit began.
#[test]
fn all_ranges_of_a_commit_hold_at_one_moment() {
    let Counters { x, y, z, mut first, mut second } = counters::<Occ>(true);
    let others = (x.clone(), y.clone(), z.clone());
    let mut passed = [false; 2];
    let hook = move |point| {
        let (x, y, z) = &others;
        if point == Point::Unlocked && !passed[0] {
            passed[0] = true;
            let changed = second.run(|tx| {
                x.set(tx, 2)?;
                y.set(tx, 0)?;
                z.add(tx, 10)
            });
            changed.unwrap();
        }
        if point == Point::Ranged && !passed[1] {
            passed[1] = true;
            let changed = second.run(|tx| {
                x.set(tx, 0)?;
                y.set(tx, 1)
            });
            changed.unwrap();
        }
    };
    let outer = with_hook(hook, || {
        first.with(ONCE()).run(|tx| {
            assert!(x.at_least(tx, 1)? && y.at_least(tx, 1)?);
            z.add(tx, 1)
        })
    });
    assert_eq!(outer, CONFLICT);
    let now = first.run(|tx| Ok((x.get(tx)?, y.get(tx)?, z.get(tx)?)));
    assert_eq!(now, Ok((0, 1, 11)));
}

/// The commit has locked its row when another transaction changes the number, within the range.
#[test]
fn a_range_is_tested_again_after_a_change_under_the_commits_locks() {
    let Counters { x, z, mut first, mut second, .. } = counters::<Occ>(true);
    let (other, mut changes) = (x.clone(), 0);
    let hook = move |point| {
        if point == Point::Locked && changes == 0 || point == Point::Ranged && changes == 1 {
            changes += 1;
            second.run(|tx| other.add(tx, 1)).unwrap();
        }
    };
    let outer = with_hook(hook, || {
        first.with(ONCE()).run(|tx| {
            assert!(x.is_within(tx, 1..=3)?);
            z.add(tx, 1)
        })
    });
    assert_eq!(outer, Ok(()));
    assert_eq!(first.run(|tx| Ok((x.get(tx)?, z.get(tx)?))), Ok((3, 2)));
}

#[test]
fn own_additions_shift_the_range_that_is_observed() {
    // With 3 pending, the number must stay at least 2 for the sum to be at least 5.
    for (change, ends_well) in [(1, true), (-1, false)] {
        let Counters { x, z, mut first, mut second, .. } = counters::<Occ>(true);
        first.run(|tx| x.set(tx, 2)).unwrap();
        let outer = first.with(ONCE()).run(|tx| {
            x.add(tx, 4)?;
            x.sub(tx, 1)?;
            assert!(x.at_least(tx, 5)? && !x.at_least(tx, 7)?);
            second.run(|tx| x.add(tx, change))?;
            z.add(tx, 1)
        });
        assert_eq!(outer.is_ok(), ends_well, "{change}: {outer:?}");
        let expected = if ends_well { 6 } else { 1 };
        assert_eq!(first.run(|tx| x.get(tx)), Ok(expected));
    }
}

#[test]
fn a_read_of_the_number_beside_its_range_is_of_one_version() {
    let Counters { x, z, mut first, mut second, .. } = counters::<Occ>(true);
    let outer = first.with(ONCE()).run(|tx| {
        assert!(x.at_least(tx, 1)?);
        assert_eq!(x.get(tx), Ok(1));
        second.run(|tx| x.add(tx, 1))?;
        z.add(tx, 1)
    });
    assert_eq!(outer, CONFLICT);
    // The ranges of an attempt that has failed are not those of the next one.
    let outer = first.with(ONCE()).run(|tx| {
        assert_eq!(x.get(tx), Ok(2));
        second.run(|tx| x.add(tx, 1))?;
        z.add(tx, 1)
    });
    assert_eq!(outer, CONFLICT);
}

protocol_tests!(all: a_number_in_a_part_of_a_word_is_within_its_range);
fn a_number_in_a_part_of_a_word_is_within_its_range<P: Protocol>() {
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    db.run(|tx| table.insert(tx, Item { small: 200, ..Item::new(1, -5) })).unwrap();
    let within = db.run(|tx| {
        table.update(tx, 1, Item::SMALL.add(3))?;
        let small = table.is_within(tx, 1, Item::SMALL, 203..=203)?;
        table.update(tx, 1, Item::FLAG.set(true))?;
        let count = table.is_within(tx, 1, Item::COUNT, -5..0)?;
        table.update(tx, 1, Item::SMALL.set(7))?;
        Ok([small, count, table.is_within(tx, 1, Item::SMALL, ..7)?])
    });
    assert_eq!(within, Ok([true, true, false]), "{}", P::NAME);
    let missing = db.run(|tx| table.is_within(tx, 2, Item::COUNT, ..));
    assert_eq!(missing, Err(Abort::NotFound), "{}", P::NAME);
    // An overflow shows as it does at a read.
    let overflow = db.run(|tx| {
        table.update(tx, 1, Item::SMALL.add(250))?;
        table.is_within(tx, 1, Item::SMALL, ..)
    });
    assert_eq!(overflow, Err(Abort::Overflow), "{}", P::NAME);
}

protocol_tests!(overlapping: a_row_that_is_deleted_is_in_no_range);
fn a_row_that_is_deleted_is_in_no_range<P: Protocol>() {
    let Scene { table, mut first, mut second, .. } = scene::<P>();
    let outer = first.with(ONCE()).run(|tx| {
        assert!(table.is_within(tx, 0, Item::COUNT, 0..)?);
        second.with(ONCE()).run(|tx| {
            table.delete(tx, 0)?;
            table.read(tx, 1, Item::COUNT).map(|_| ())
        })?;
        table.update(tx, 1, Item::COUNT.add(1))
    });
    let is_there = first.run(|tx| Ok(table.get(tx, 0, ())?.is_some())).unwrap();
    assert!(is_there || outer.is_err(), "{}: {outer:?}", P::NAME);
}

/// Returns what the engine notes of the conflict of a session's last attempt that has failed.
fn last_conflict(session: &Session<Occ>) -> String {
    format!("{:?}", session.last_conflict())
}

#[test]
fn a_conflict_is_about_the_number_that_has_left_its_range() {
    for by_view in [true, false] {
        let Counters { x, y, z, mut first, mut second } = counters::<Occ>(true);
        let ranged = Rc::new(Cell::new(0));
        let counted = ranged.clone();
        let hook = move |point| counted.set(counted.get() + u32::from(point == Point::Ranged));
        let outer = with_hook(hook, || {
            first.with(ONCE()).run(|tx| {
                assert!(x.at_least(tx, 1)? && y.at_least(tx, 1)? && z.at_least(tx, 1)?);
                second.run(|tx| {
                    x.add(tx, 1)?;
                    y.set(tx, 0)?;
                    if by_view { z.add(tx, 1) } else { Ok(()) }
                })?;
                z.add(tx, 1)
            })
        });
        assert_eq!(outer, CONFLICT);
        // No number is read again behind the one that has left its range.
        assert_eq!(ranged.get(), 1, "by the view: {by_view}");
        let noted = last_conflict(&first);
        let outer = first.with(ONCE()).run(|tx| {
            y.get(tx)?;
            second.run(|tx| y.add(tx, 1))?;
            z.add(tx, 1)
        });
        assert_eq!(outer, CONFLICT);
        assert_eq!(noted, last_conflict(&first), "by the view: {by_view}");
    }
}

#[test]
fn a_validation_that_succeeds_in_the_end_leaves_no_conflict() {
    for writes in [true, false] {
        let Counters { x, y, z, mut first, mut second } = counters::<Occ>(false);
        let outer = first.with(ONCE()).run(|tx| {
            assert!(x.at_least(tx, 1)? && y.at_least(tx, 1)?);
            second.run(|tx| x.add(tx, 1))?;
            if writes { z.add(tx, 1) } else { Ok(()) }
        });
        assert_eq!(outer, Ok(()));
        assert!(first.state_for_tests().worker.local.conflict.is_none(), "writes: {writes}");
    }
}

#[test]
fn a_change_with_which_own_additions_overflow_leaves_the_range() {
    for reads in [true, false] {
        let Counters { x, mut first, mut second, .. } = counters::<Occ>(true);
        first.run(|tx| x.set(tx, i64::MAX - 10)).unwrap();
        let mut told = Vec::new();
        let outer = first.with(RunOptions::new().attempts_max(2)).run(|tx| {
            x.add(tx, 5)?;
            told.push(x.at_least(tx, 0));
            told[told.len() - 1]?;
            second.run(|tx| x.add(tx, 8))?;
            if reads { x.get(tx).map(drop) } else { Ok(()) }
        });
        assert_eq!(told, [Ok(true), Err(Abort::Overflow)], "reads: {reads}");
        assert_eq!(outer, Err(Abort::Overflow));
    }
}
