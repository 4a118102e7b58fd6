//! Tests of when draws from a sequence write to the log, and of the commits on which they rest.

use super::disk::Logged;
use super::replay::Replay;
use crate::catalog::{BLOCK, NUMBER_MAX};
use crate::engine::Protocol;
use crate::log::Level;
use crate::{Abort, Database, Pending, Sequence};

/// A database with a sequence, whose row is durable and has limit zero.
struct Scene<P: Protocol> {
    logged: Logged<P>,
    numbers: Sequence<P>,
}

impl<P: Protocol> Scene<P> {
    fn new() -> Scene<P> {
        let logged = Logged::new(Database::<P>::builder().manual_epochs(5));
        let numbers = logged.db.sequence("orders").unwrap();
        let scene = Scene { logged, numbers };
        scene.logged.settle();
        assert_eq!(scene.recovered(), 0);
        scene
    }

    /// Draws a number in a transaction that does nothing else.
    fn draw(&self) -> Pending<u64> {
        self.logged.db.run_logged(|tx| self.numbers.next(tx))
    }

    /// Draws a number as [`Scene::draw`] does. Returns the number, and whether the transaction has
    /// written to the log.
    fn draw_and_look(&self) -> (u64, bool) {
        let before = self.logged.log.appended_words();
        let number = *self.draw().peek().unwrap();
        (number, self.logged.log.appended_words() > before)
    }

    /// Returns the limit that a recovery finds now.
    fn recovered(&self) -> u64 {
        let rows = Replay::of(&self.logged).rows;
        let [limit] = &*rows.into_values().collect::<Vec<_>>() else {
            panic!("one sequence has one row")
        };
        limit[0]
    }
}

protocol_tests!(all: a_limit_is_used_when_it_is_durable_and_not_before);
fn a_limit_is_used_when_it_is_durable_and_not_before<P: Protocol>() {
    let scene = Scene::<P>::new();
    let first = scene.draw();
    // The first transaction has committed the limit 1025. A crash would lose that limit.
    let before = scene.logged.log.appended_words();
    let second = scene.draw();
    assert_eq!((first.peek(), second.peek()), (Ok(&1), Ok(&2)));
    let told = second.is_at(Level::Durable);
    assert!(!told, "{}: told of a number that a crash would repeat", P::NAME);
    assert!(scene.logged.log.appended_words() > before, "{}: limit not raised", P::NAME);
    scene.logged.settle();
    assert!(first.is_at(Level::Durable) && second.is_at(Level::Durable));
    assert_eq!(scene.recovered(), 2 + BLOCK);
    assert_eq!(scene.draw_and_look(), (3, false), "{}", P::NAME);
}

protocol_tests!(all: a_limit_of_a_transaction_without_effect_is_not_used);
fn a_limit_of_a_transaction_without_effect_is_not_used<P: Protocol>() {
    let scene = Scene::<P>::new();
    let refused = scene.logged.db.run(|tx| {
        scene.numbers.next(tx)?;
        Err::<(), _>(Abort::NotFound)
    });
    assert_eq!(refused, Err(Abort::NotFound));
    assert_eq!(scene.draw_and_look(), (2, true), "{}: no limit is above 2", P::NAME);
    scene.logged.settle();
    assert_eq!(scene.recovered(), 2 + BLOCK);
}

protocol_tests!(all: a_limit_stays_staged_when_a_part_is_undone);
fn a_limit_stays_staged_when_a_part_is_undone<P: Protocol>() {
    let scene = Scene::<P>::new();
    let numbers = &scene.numbers;
    let drawn = scene.logged.db.run(|tx| {
        let mut drawn = Vec::new();
        let undone = tx.attempt(|tx| {
            drawn.push(numbers.next(tx)?);
            let undone = tx.attempt(|tx| {
                drawn.push(numbers.next(tx)?);
                Err::<(), _>(Abort::Duplicate)
            });
            assert_eq!(undone, Err(Abort::Duplicate));
            tx.attempt(|tx| {
                drawn.push(numbers.next(tx)?);
                Ok::<_, Abort>(())
            })?;
            Err::<(), _>(Abort::NotFound)
        });
        assert_eq!(undone, Err(Abort::NotFound));
        Ok(drawn)
    });
    assert_eq!(drawn, Ok(vec![1, 2, 3]), "{}", P::NAME);
    scene.logged.settle();
    assert_eq!(scene.recovered(), 3 + BLOCK, "{}", P::NAME);
}

protocol_tests!(overlapping: transactions_whose_parts_were_undone_do_not_conflict);
fn transactions_whose_parts_were_undone_do_not_conflict<P: Protocol>() {
    let Scene { logged, numbers } = Scene::<P>::new();
    let (mut outer, mut inner) = (logged.db.session().unwrap(), logged.db.session().unwrap());
    let drawn = outer.run(|tx| {
        let undone = tx.attempt(|tx| {
            numbers.next(tx)?;
            Err::<(), _>(Abort::NotFound)
        });
        assert_eq!(undone, Err(Abort::NotFound));
        inner.run(|tx| numbers.next(tx))
    });
    assert_eq!(drawn, Ok::<_, Abort>(2), "{}", P::NAME);
    assert_eq!(logged.db.stats().retries, 0, "{}", P::NAME);
    logged.settle();
    assert_eq!(Scene { logged, numbers }.recovered(), 2 + BLOCK);
}

protocol_tests!(all: most_draws_of_a_sequence_write_no_log);
fn most_draws_of_a_sequence_write_no_log<P: Protocol>() {
    let scene = Scene::<P>::new();
    assert_eq!(scene.draw_and_look(), (1, true));
    scene.logged.settle();
    let mut written = Vec::new();
    for expected in 2..=2 + BLOCK {
        let (number, has_written) = scene.draw_and_look();
        assert_eq!(number, expected);
        written.extend(has_written.then_some(number));
    }
    // The durable limit is 1025: some numbers in the half block before it, all behind it.
    let ahead = (514..=1025).filter(|number| number % 16 == 0);
    assert_eq!(written, ahead.chain([1026]).collect::<Vec<u64>>(), "{}", P::NAME);
    scene.logged.settle();
    assert_eq!(scene.recovered(), 1026 + BLOCK);
    assert_eq!(scene.draw_and_look(), (1027, false), "{}", P::NAME);
}

protocol_tests!(overlapping: transactions_that_raise_the_limit_do_not_conflict);
fn transactions_that_raise_the_limit_do_not_conflict<P: Protocol>() {
    let Scene { logged, numbers } = Scene::<P>::new();
    let (mut outer, mut inner) = (logged.db.session().unwrap(), logged.db.session().unwrap());
    let drawn = outer.run(|tx| {
        let own = numbers.next(tx)?;
        let within = inner.run(|tx| numbers.next(tx))?;
        Ok((own, within, numbers.next(tx)?))
    });
    assert_eq!(drawn, Ok((1, 2, 3)), "{}", P::NAME);
    let stats = logged.db.stats();
    assert_eq!((stats.retries, outer.last_conflict()), (0, None), "{}", P::NAME);
    logged.settle();
    assert_eq!(Scene { logged, numbers }.recovered(), 3 + BLOCK);
}

protocol_tests!(all: every_draw_beyond_the_last_number_is_an_error);
fn every_draw_beyond_the_last_number_is_an_error<P: Protocol>() {
    let scene = Scene::<P>::new();
    scene.numbers.go_to(NUMBER_MAX - 2);
    let draw = || scene.logged.db.run(|tx| scene.numbers.next(tx));
    let drawn = [(); 5].map(|()| draw());
    let over = Err(Abort::Overflow);
    assert_eq!(drawn, [Ok(NUMBER_MAX - 1), Ok(NUMBER_MAX), over, over, over], "{}", P::NAME);
    scene.logged.settle();
    assert_eq!(scene.recovered(), NUMBER_MAX + BLOCK);
}
