//! Cuts in the midst of commits: one of two transactions has read a row that the other replaces,
//! and the tests check which of the two a prefix contains.

use super::super::interleaving::acting;
use super::super::rows::Item;
use super::super::transactions::{ONCE, run};
use super::disk::Logged;
use super::replay::Replay;
use super::story::{Story, Witness};
use crate::engine::Protocol;
use crate::log::Cuts;
use crate::protocols::{Occ, Recorded, TicToc};
use crate::sync::Point;
use crate::{Database, Session, Table, Tx};
use candide_check::Verdict;
use std::cell::RefCell;
use std::rc::Rc;

/// A database with rows 1 and 2, the last written being row 1, and two sessions.
struct Scene<P: Protocol> {
    logged: Logged<Recorded<P>>,
    items: Table<Item, Recorded<P>>,
    first: Session<Recorded<P>>,
    second: Session<Recorded<P>>,
    witness: Witness,
}

fn scene<P: Protocol>() -> Scene<P> {
    let logged = Logged::new(Database::<Recorded<P>>::builder().manual_epochs(1));
    let items = logged.db.table::<Item>("items").unwrap();
    let [mut first, second] = [0; 2].map(|_| logged.db.session().unwrap());
    let mut witness = Witness::default();
    for transaction in 0..2 {
        run(&mut first, |tx| match transaction {
            0 => (1..=2).try_for_each(|id| items.insert(tx, Item::new(id, 0))),
            _ => items.update(tx, 1, Item::COUNT.set(1)),
        });
        witness.note(&mut first);
    }
    logged.settle();
    Scene { logged, items, first, second, witness }
}

/// A cut that was taken before.
#[derive(Debug)]
struct Taken(u64);

impl Cuts for Taken {
    fn cut(&self) -> Option<u64> {
        Some(self.0)
    }
}

/// Plays two transactions: the first one reads row 1 and writes row 2; at a point of its commit,
/// the second one replaces row 1, and a cut is taken. A round is made with that cut once the first
/// one has ended. Returns the history, and whether the first transaction has committed.
fn overtaken<P: Protocol>(at: Point) -> (Logged<Recorded<P>>, Story, bool) {
    let Scene { logged, items, mut first, mut second, mut witness } = scene::<P>();
    let (cuts, rows) = (logged.cuts(), items.clone());
    let came = Rc::new(RefCell::new((None, Witness::default())));
    let comes = came.clone();
    let meanwhile = move || {
        // Under a policy that locks reads, the commit may fail.
        let _ = second.with(ONCE()).run(|tx| rows.update(tx, 1, Item::COUNT.add(10)));
        let (cut, witness) = &mut *comes.borrow_mut();
        witness.note(&mut second);
        *cut = cuts.cut();
    };
    let copy = |tx: &Tx<'_, Recorded<P>>| {
        let count = items.read(tx, 1, Item::COUNT)?;
        items.update(tx, 2, Item::COUNT.set(count))
    };
    let copied = acting(at, meanwhile, || first.with(ONCE()).run(copy));
    witness.note(&mut first);
    let (cut, other) = came.take();
    logged.log.round(&Taken(cut.expect("it was taken")));
    logged.settle();
    Replay::of(&logged).assert_is(&logged);
    let story = Story::of(&logged, [witness, other]);
    (logged, story, copied == Ok(()))
}

protocol_tests!(overlapping: a_prefix_is_closed_under_anti_dependencies);
/// The first transaction comes before the second one in every serial order. If a prefix contains
/// the second one alone, a reader of the prefix closes a circle.
fn a_prefix_is_closed_under_anti_dependencies<P: Protocol>() {
    let (logged, story, has_committed) = overtaken::<P>(Point::Validated);
    assert!(has_committed, "{}: it was validated", P::NAME);
    story.assert_all(&logged, &[]);
}

/// `TicToc` has no readable cuts because a commit may come before commits of an earlier epoch.
#[test]
fn under_tictoc_a_durable_prefix_need_not_be_a_serial_prefix() {
    let (logged, story, has_committed) = overtaken::<TicToc>(Point::Unlocked);
    assert!(has_committed, "by its timestamp it comes before the other one");
    story.assert_recoverable();
    story.assert_in_order_of_sessions();
    let states = story.assert_prefixes(&logged, &[]);
    let Verdict::Violated(violation) = story.judge::<TicToc>(&states[1..]) else {
        panic!("all prefixes are readable: {states:?}");
    };
    // Without the reader, all is well.
    assert_eq!(story.judge::<TicToc>(&[]), Verdict::Serializable, "{violation}");
}

/// In the schedule in which `TicToc` commits, `Occ` does not commit.
#[test]
fn under_occ_a_commit_does_not_come_before_an_earlier_epoch() {
    let (logged, story, has_committed) = overtaken::<Occ>(Point::Unlocked);
    assert!(!has_committed);
    story.assert_all(&logged, &[]);
}

protocol_tests!(all: a_round_in_a_quiet_database_makes_all_commits_durable);
fn a_round_in_a_quiet_database_makes_all_commits_durable<P: Protocol>() {
    let logged = Logged::new(Database::<P>::builder().manual_epochs(1));
    let items = logged.db.table::<Item>("items").unwrap();
    let mut session = logged.db.session().unwrap();
    for id in 0..6 {
        run(&mut session, |tx| items.insert(tx, Item::new(id, 0)));
        let stamp = session.rests_on();
        assert!(logged.durable() < stamp, "{}: stamp {stamp} is old", P::NAME);
        logged.round();
        assert!(logged.durable() >= stamp, "{}", P::NAME);
        assert_eq!(Replay::of(&logged).rows.len() as u64, id + 1, "{}", P::NAME);
        if id % 2 == 0 {
            logged.db.inner.engine.epochs.pass();
        }
    }
}
