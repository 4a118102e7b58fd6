//! Alternatives ([`Tx::or_else`](crate::Tx::or_else)).

use super::super::rows::Item;
use super::{Scene, Tables};
use crate::engine::Protocol;
use crate::sync::Random;
use crate::sync::size::is_short;
use crate::{Abort, RunOptions, Tx};
use std::cell::Cell;
use std::rc::Rc;

protocol_tests!(all: the_first_alternative_that_does_not_retry_is_kept);
fn the_first_alternative_that_does_not_retry_is_kept<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let ran = Rc::new(Cell::new(0));
    let chosen = session.run(|tx| {
        items.update(tx, 0, Item::COUNT.add(1))?;
        tx.or_else(
            |tx| {
                items.update(tx, 0, Item::COUNT.add(10))?;
                items.insert(tx, Item::new(9, 0))?;
                let ran = ran.clone();
                tx.on_commit(move || ran.set(ran.get() + 1));
                tx.check(items.read(tx, 1, Item::COUNT)? == 1).map(|()| 1)
            },
            |tx| {
                let ran = ran.clone();
                tx.on_commit(move || ran.set(ran.get() + 10));
                items.update(tx, 0, Item::COUNT.add(100)).map(|()| 2)
            },
        )
    });
    assert_eq!((chosen, ran.get()), (Ok(2), 10), "{}", P::NAME);
    let rows = session.run(|tx| Ok([0, 9].map(|id| items.get(tx, id, Item::COUNT).unwrap())));
    assert_eq!(rows, Ok([Some(101), None]), "{}", P::NAME);
}

protocol_tests!(all: an_error_of_an_alternative_is_passed_on);
fn an_error_of_an_alternative_is_passed_on<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let ended = session.run(|tx| {
        let first = tx.or_else(|_| Err(Abort::Indexed), |_| Ok(()));
        assert_eq!(first, Err(Abort::Indexed), "{}", P::NAME);
        let second = tx.or_else(
            |tx| tx.retry::<()>(),
            |tx| {
                items.update(tx, 1, Item::COUNT.add(1))?;
                Err(Abort::Indexed)
            },
        );
        assert_eq!(second, Err(Abort::Indexed), "{}", P::NAME);
        Ok(())
    });
    assert_eq!(ended, Ok(()), "{}", P::NAME);
    assert_eq!(session.run(|tx| items.read(tx, 1, Item::COUNT)), Ok(0), "{}", P::NAME);
}

protocol_tests!(all: a_part_undoes_only_its_own_retry);
fn a_part_undoes_only_its_own_retry<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let (session, items) = (&mut scene.session, &scene.items);
    let once = || RunOptions::new().attempts_max(1);
    let ended = session.with(once()).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        assert_eq!(tx.attempt(|tx| tx.retry::<()>()), Err(Abort::Retry), "{}", P::NAME);
        Ok(1)
    });
    assert_eq!(ended, Ok(1), "{}", P::NAME);
    // A part that ignores its own retry has failed.
    let ended = session.with(once()).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        let part = tx.attempt(|tx| {
            let _ = tx.retry::<()>();
            Ok(())
        });
        assert_eq!(part, Err(Abort::Retry), "{}", P::NAME);
        Ok(1)
    });
    assert_eq!(ended, Ok(1), "{}", P::NAME);
    let waits = match super::super::properties::<P>().one_session {
        true => Err(Abort::NothingToAwait),
        false => Err(Abort::AttemptsExhausted),
    };
    let ended = session.with(once()).run(|tx| {
        items.read(tx, 1, Item::COUNT)?;
        let _ = tx.retry::<()>();
        let _ = tx.attempt(|_| Err::<(), _>(Abort::Indexed));
        let _ = tx.attempt(|tx| tx.retry::<()>());
        Ok(1)
    });
    assert_eq!(ended, waits, "{}", P::NAME);
}

protocol_tests!(concurrent: reads_of_both_alternatives_are_watched);
fn reads_of_both_alternatives_are_watched<P: Protocol>() {
    for changed in [1, 2, 3] {
        let (result, _) = Scene::<P>::new().wake(
            |tables, tx| {
                let wait = |tx: &Tx<'_, P>, id| tables.await_count(tx, id, 1).map(|()| id);
                tx.or_else(|tx| wait(tx, 1), |tx| tx.or_else(|tx| wait(tx, 2), |tx| wait(tx, 3)))
            },
            &[&|tables, tx| tables.items.update(tx, &changed, Item::COUNT.set(1))],
        );
        assert_eq!(result, Ok(changed), "{}", P::NAME);
    }
}

protocol_tests!(overlapping: the_second_alternative_is_validated_with_the_reads_of_the_first);
/// The first alternative could run when the transaction commits, so the second one must not be
/// kept.
fn the_second_alternative_is_validated_with_the_reads_of_the_first<P: Protocol>() {
    let mut scene = Scene::<P>::new();
    let mut other = scene.db.session().unwrap();
    let (session, items) = (&mut scene.session, &scene.items);
    let chosen = session.run(|tx| {
        let chosen = tx.or_else(
            |tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1).map(|()| 1),
            |tx| items.update(tx, 2, Item::COUNT.add(1)).map(|()| 2),
        )?;
        if chosen == 2 {
            other.run(|tx| {
                items.update(tx, 1, Item::COUNT.set(1))?;
                items.update(tx, 3, Item::COUNT.set(1))
            })?;
            // The transaction now comes after the other one, if it reads the writes of that one.
            items.read(tx, 3, Item::COUNT)?;
        }
        Ok(chosen)
    });
    assert_eq!(chosen, Ok(1), "{}", P::NAME);
}

/// A step of a drawn transaction, on rows 0 to 2.
#[derive(Debug, Clone)]
enum Step {
    Add(u64, i64),
    Delete(u64),
    Put(u64, i64),
    /// Waits unless a row has this count.
    Check(u64, i64),
    Fail,
    Part(Vec<Step>),
    Choice(Vec<Step>, Vec<Step>),
}

/// The rows of the model.
type Rows = [Option<i64>; 3];

/// The reason why steps of the model have ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Waits,
    Fails(Abort),
}

impl Step {
    fn draw(random: &mut Random, depth: u32) -> Step {
        let (row, count) = (random.below(3), random.below(3) as i64);
        match random.below(if depth == 0 { 6 } else { 9 }) {
            0 => Step::Add(row, 1),
            1 => Step::Delete(row),
            2 => Step::Put(row, count),
            3 | 4 => Step::Check(row, count),
            5 => Step::Fail,
            6 => Step::Part(draw(random, depth - 1)),
            _ => Step::Choice(draw(random, depth - 1), draw(random, depth - 1)),
        }
    }

    fn in_model(&self, rows: &mut Rows) -> Result<(), Ended> {
        match self {
            Step::Add(row, count) => match &mut rows[*row as usize] {
                Some(old) => *old += count,
                None => return Err(Ended::Fails(Abort::NotFound)),
            },
            Step::Delete(row) => match rows[*row as usize].take() {
                Some(_) => {}
                None => return Err(Ended::Fails(Abort::NotFound)),
            },
            Step::Put(row, count) => rows[*row as usize] = Some(*count),
            Step::Check(row, count) if rows[*row as usize] == Some(*count) => {}
            Step::Check(..) => return Err(Ended::Waits),
            Step::Fail => return Err(Ended::Fails(Abort::Indexed)),
            Step::Part(steps) => {
                // The transaction continues after any end of the part.
                let _ = part_in_model(steps, rows);
            }
            Step::Choice(first, second) => match part_in_model(first, rows) {
                Err(Ended::Waits) => part_in_model(second, rows)?,
                ended => ended?,
            },
        }
        Ok(())
    }

    fn run<P: Protocol>(&self, tables: &Tables<P>, tx: &Tx<'_, P>) -> Result<(), Abort> {
        let items = &tables.items;
        match self {
            Step::Add(row, count) => items.update(tx, row, Item::COUNT.add(*count)),
            Step::Delete(row) => items.delete(tx, row),
            Step::Put(row, count) => items.put(tx, Item::new(*row, *count)).map(drop),
            Step::Check(row, count) => tx.check(items.get(tx, row, Item::COUNT)? == Some(*count)),
            Step::Fail => Err(Abort::Indexed),
            Step::Part(steps) => match tx.attempt(|tx| run_all(steps, tables, tx)) {
                Err(conflict) if conflict.is_conflict() => Err(conflict),
                _ => Ok(()),
            },
            Step::Choice(first, second) => {
                tx.or_else(|tx| run_all(first, tables, tx), |tx| run_all(second, tables, tx))
            }
        }
    }
}

fn draw(random: &mut Random, depth: u32) -> Vec<Step> {
    (0..1 + random.below(3)).map(|_| Step::draw(random, depth)).collect()
}

fn part_in_model(steps: &[Step], rows: &mut Rows) -> Result<(), Ended> {
    let before = *rows;
    steps.iter().try_for_each(|step| step.in_model(rows)).inspect_err(|_| *rows = before)
}

fn run_all<P: Protocol>(steps: &[Step], tables: &Tables<P>, tx: &Tx<'_, P>) -> Result<(), Abort> {
    steps.iter().try_for_each(|step| step.run(tables, tx))
}

protocol_tests!(all: random_alternatives_agree_with_a_model);
protocol_tests!(
    erased: drawn_alternatives_are_as_in_the_model_when_erased =
        random_alternatives_agree_with_a_model()
);
fn random_alternatives_agree_with_a_model<P: Protocol>() {
    let Scene { items, sorted, mut session, .. } = Scene::<P>::new();
    let tables = Tables { items, sorted };
    let waits = match super::super::properties::<P>().one_session {
        true => Abort::NothingToAwait,
        false => Abort::AttemptsExhausted,
    };
    let mut random = Random::seeded(48);
    let mut rows: Rows = [Some(0); 3];
    for number in 0..if is_short() { 300 } else { 10_000 } {
        let steps = draw(&mut random, 3);
        let wanted = part_in_model(&steps, &mut rows).map_err(|ended| match ended {
            Ended::Waits => waits,
            Ended::Fails(abort) => abort,
        });
        let options = RunOptions::new().attempts_max(1);
        let ended = session.with(options).run(|tx| {
            // Of rows that the transaction has put, it observes nothing.
            tables.items.read(tx, 3, Item::COUNT)?;
            run_all(&steps, &tables, tx)
        });
        assert_eq!(ended, wanted, "{}, transaction {number}: {steps:?}", P::NAME);
        let stored = session
            .run(|tx| Ok([0, 1, 2].map(|id| tables.items.get(tx, id, Item::COUNT).unwrap())));
        assert_eq!(stored, Ok(rows), "{}, transaction {number}: {steps:?}", P::NAME);
    }
}
