//! Tests that locks by policy are only hints (LK1): with a policy that answers by chance,
//! transactions are as serializable as with any other.

use super::super::random_transactions::{Judge, Mix};
use super::super::rows::Item;
use super::super::transactions::ONCE;
use super::super::two_sessions::read_then_write;
use super::{Scene, scene};
use crate::policy::{MoccOptions, Policies, Policy};
use crate::protocols::{Occ, Recorded};
use crate::sync::size::{is_short, stress};
use crate::sync::{AtomicBool, Duration, Ordering, Point, Random, with_hook};
use crate::{Abort, Database, Table, Tx};
use candide_check::Options;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The number of keys. The number is greater than that of threads.
const KEYS: u64 = 16;
const THREADS: u64 = 6;
/// The number of locks that are granted without being taken, and the number of those that are
/// refused, in a full run.
const ANSWERS: u64 = 1_000_000;
/// The number of rounds of a test in which two transactions meet. In each round the policy gives
/// other answers.
const ROUNDS: u32 = 200;

#[test]
fn histories_are_serializable_whatever_a_policy_answers() {
    judge_answers(Policy::Random.into(), ANSWERS);
}

/// By chance, half of the locks of hot rows are not taken, or are refused.
#[test]
fn histories_are_serializable_though_mocc_lacks_half_of_its_locks() {
    for (queues, answers) in [(false, ANSWERS), (true, ANSWERS / 10)] {
        let options = MoccOptions::new().threshold(0).queue_locks(queues).unreliable();
        judge_answers(Policies::of(Policy::Mocc).mocc(options), answers);
    }
}

fn judge_answers(policies: Policies, answers: u64) {
    let wanted = if is_short() { answers / 60 } else { answers * stress() };
    let name = policies.name();
    let builder = Database::<Recorded<Occ>>::builder().policy(policies);
    let mix = Mix::new(builder.build().unwrap(), KEYS);
    let options = Options { strict: true, opaque: true, horizon: 1 << 20 };
    let mut judge = Judge::new(options, name.to_string());
    let given = || {
        let locks = mix.db.stats().locks;
        locks.taken.min(locks.forgone)
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let work = |thread| {
            let (mix, done) = (&mix, &done);
            let mut session = mix.db.session().unwrap();
            scope.spawn(move || {
                let mut random = Random::seeded(thread);
                while !done.load(Ordering::Relaxed) {
                    mix.step(&mut session, &mut random, 5);
                }
            })
        };
        let workers: Vec<_> = (0..THREADS).map(work).collect();
        while given() < wanted && !workers.iter().any(|worker| worker.is_finished()) {
            judge.hear(&mix.db.take_history());
            std::thread::sleep(Duration::from_millis(1));
        }
        done.store(true, Ordering::Relaxed);
    });
    judge.hear(&mix.db.take_history());
    let judged = judge.judge();
    let locks = mix.db.stats().locks;
    eprintln!("{name}: {judged} transactions were judged; {locks:?}");
    assert!(locks.taken >= wanted && locks.forgone >= wanted, "{locks:?}");
}

type Body = fn(&Table<Item, Occ>, &Tx<'_, Occ>) -> Result<(), Abort>;

/// Runs one attempt of `first`, and one of `second` when `first` passes the point `at` of its
/// commit, in many rounds. The two must not both commit, and in some rounds one of them must.
fn never_both(at: Point, first: Body, second: Body) {
    let Scene { table, sessions: [mut outer, inner, _], .. } = scene(Policy::Random);
    let inner = Rc::new(RefCell::new(inner));
    let mut commits = 0;
    for round in 0..ROUNDS {
        let (rows, inner, ended) = (table.clone(), inner.clone(), Rc::new(Cell::new(None)));
        let noted = ended.clone();
        let hook = move |point| {
            if point == at {
                noted.set(Some(inner.borrow_mut().with(ONCE()).run(|tx| second(&rows, tx))));
            }
        };
        let outer = with_hook(hook, || outer.with(ONCE()).run(|tx| first(&table, tx)));
        let ends = [Some(outer), ended.get()];
        assert!(!ends.iter().all(|end| *end == Some(Ok(()))), "both commit in round {round}");
        commits += u32::from(ends.contains(&Some(Ok(()))));
    }
    assert!(commits > ROUNDS / 2, "{commits} commits");
}

#[test]
fn a_row_that_a_policy_claims_to_have_locked_is_validated() {
    never_both(
        Point::Unlocked,
        |table, tx| read_then_write(table, tx, 0, 1),
        |table, tx| read_then_write(table, tx, 1, 0),
    );
}

#[test]
fn a_commit_stops_readers_of_its_rows_before_it_validates() {
    never_both(
        Point::Validated,
        |table, tx| read_then_write(table, tx, 2, 0),
        |table, tx| read_then_write(table, tx, 0, 2),
    );
}

#[test]
fn a_holder_stops_readers_of_its_rows_before_it_validates() {
    never_both(
        Point::Validated,
        |table, tx| {
            table.read_for_update(tx, 0, Item::COUNT)?;
            read_then_write(table, tx, 2, 0)
        },
        |table, tx| read_then_write(table, tx, 0, 2),
    );
}
