//! Voter: counts agree with votes after honest runs, and damage has a name.

use candide::{Abort, Bytes, Occ, Protocol, Tx};
use candide_workloads::voter::{
    AreaCode, Caller, Contest, InState, StateCount, Vote, Voter, VoterTables,
};
use candide_workloads::{Loaded, Worker};

use crate::common::{
    Remains, assert_failed, assert_holds, assert_same_remains, check, database, honest, load, run,
    run_unaccounted, sorted,
};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 800;

/// Few telephones, so that they run out of votes.
fn knobs() -> Voter {
    Voter { telephones: 2, votes_max: 3, ..Voter::strict() }
}

#[test]
fn counts_agree_with_votes_under_every_protocol_and_switch() {
    assert_holds(&knobs(), THREADS, STEPS, |committed, all| {
        assert!(0 < committed && committed < all, "some votes are refused, not all");
    });
}

#[test]
fn votes_for_no_contestant_and_beyond_the_limit_are_refused() {
    let all_invalid = Voter { invalid_pct: 100, ..knobs() };
    let db = database(true, true);
    assert_eq!(run(&db, &load(&db, &all_invalid, 1), 1, 100), 0);
    // 305 areas with a telephone each, which may vote once.
    let once = Voter { telephones: 1, votes_max: 1, invalid_pct: 0, ..knobs() };
    let db = database(true, true);
    let tables = load(&db, &once, 1);
    assert!((1..=305).contains(&run(&db, &tables, 1, 1_000)));
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    let step = worker.step().expect("no surprises");
    assert_eq!((step.kind, step.committed, step.retries), (0, false, 0));
}

/// Returns what the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Contest<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, tables) = honest(&knobs(), STEPS);
    db.run(|tx| damage(&tables.contest, tx)).expect("can be done");
    assert_failed(&check(&db, &tables), words);
}

/// Any vote that was counted.
fn some_vote(contest: &Contest<Occ>, tx: &Tx<'_, Occ>) -> Result<Vote, Abort> {
    Ok(contest.votes.iter(tx, candide::Whole).next().expect("votes")?.1)
}

#[test]
fn unaccounted_commits_are_noticed() {
    let (db, tables) = honest(&knobs(), STEPS);
    run_unaccounted(&db, &tables, 500);
    assert_failed(&check(&db, &tables), "were committed");
}

#[test]
fn every_kind_of_damage_is_noticed_by_name() {
    assert_noticed("1 telephones have a count", |contest, tx| {
        let vote = some_vote(contest, tx)?;
        contest.callers.update(tx, &vote.telephone, Caller::VOTES.add(1))
    });
    assert_noticed("1 telephones have a count", |contest, tx| {
        contest.callers.insert(tx, Caller { telephone: 5, votes: 1 })
    });
    assert_noticed("1 telephones have voted too often", |contest, tx| {
        let vote = some_vote(contest, tx)?;
        (0..3)
            .try_for_each(|number| contest.votes.insert(tx, Vote { id: u64::MAX - number, ..vote }))
    });
    assert_noticed("1 contestants have a count in a state that is not", |contest, tx| {
        let Vote { contestant, state, .. } = some_vote(contest, tx)?;
        contest.state_counts.update(tx, &InState { contestant, state }, StateCount::VOTES.add(1))
    });
    assert_noticed("1 contestants have no count in a state", |contest, tx| {
        let Vote { contestant, state, .. } = some_vote(contest, tx)?;
        contest.state_counts.delete(tx, &InState { contestant, state })
    });
    assert_noticed("contestants or area codes are not those", |contest, tx| {
        contest.contestants.delete(tx, 6)
    });
    assert_noticed("from another state", |contest, tx| {
        let area = (some_vote(contest, tx)?.telephone / 10_000_000) as u16;
        contest.area_codes.update(tx, &area, AreaCode::STATE.set(Bytes::new(*b"XX")))
    });
    assert_noticed("were committed", |contest, tx| {
        let Vote { telephone, id, .. } = some_vote(contest, tx)?;
        contest.votes.delete(tx, &(telephone, id))
    });
    assert_noticed("do not read the same", |contest, tx| {
        contest.votes.insert(tx, Vote { telephone: 5, ..some_vote(contest, tx)? })
    });
}

impl Remains<Voter> for Vec<StateCount> {
    fn of<P: Protocol>(loaded: &VoterTables<P>) -> Self {
        sorted(&loaded.contest.state_counts, |row| {
            (row.place.contestant, *row.place.state.as_bytes())
        })
    }
}

#[test]
fn one_thread_leaves_the_same_state_under_every_protocol_and_switch() {
    assert_same_remains::<_, Vec<StateCount>>(&knobs(), STEPS);
}
