//! Voter: counts agree with votes after honest runs, and damage has a name.

mod common;

use candide::{Abort, Bytes, Database, GlobalLock, Mvcc, Occ, Protocol, Serial, TicToc, Tx};
use candide_workloads::voter::{AreaCode, Caller, Contest, InState, StateCount, Vote, Voter, VoterTables};
use candide_workloads::{Loaded, Worker};
use common::{assert_failed, check, database, load, run, run_unaccounted};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 800;

/// Few telephones, so that they run out of votes.
fn knobs() -> Voter {
    Voter { telephones: 2, votes_max: 3, ..Voter::strict() }
}

fn holds<P: Protocol>(threads: usize) {
    for (updates, splitting) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = database::<P>(updates, splitting);
        let tables = load(&db, &knobs(), threads);
        for round in 0..2 {
            let committed = run(&db, &tables, threads, STEPS);
            assert!(0 < committed && committed < threads * STEPS, "some votes are refused, not all");
            let consistency = check(&db, &tables);
            let failed = Vec::<String>::new();
            assert_eq!(consistency.failed, failed, "{}, {updates}, {splitting}, round {round}", P::NAME);
        }
    }
}

#[test]
fn counts_agree_with_votes_under_every_protocol_and_switch() {
    holds::<Occ>(THREADS);
    holds::<TicToc>(THREADS);
    holds::<Mvcc>(THREADS);
    holds::<GlobalLock>(THREADS);
    holds::<Serial>(1);
}

#[test]
fn votes_are_refused_for_nobody_and_beyond_the_limit() {
    let all_invalid = Voter { invalid_pct: 100, ..knobs() };
    let db = database::<Occ>(true, true);
    assert_eq!(run(&db, &load(&db, &all_invalid, 1), 1, 100), 0);
    // 305 areas with a telephone each, which may vote once.
    let once = Voter { telephones: 1, votes_max: 1, invalid_pct: 0, ..knobs() };
    let db = database::<Occ>(true, true);
    let tables = load(&db, &once, 1);
    assert!((1..=305).contains(&run(&db, &tables, 1, 1_000)));
    let mut worker = tables.worker(db.session().expect("a session"), 0);
    let step = worker.step().expect("no surprises");
    assert_eq!((step.kind, step.committed, step.retries), (0, false, 0));
}

fn honest() -> (Database<Occ>, VoterTables<Occ>) {
    let db = database::<Occ>(true, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, STEPS);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
    (db, tables)
}

/// What the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Contest<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, tables) = honest();
    db.run(|tx| damage(&tables.contest, tx)).expect("can be done");
    assert_failed(&check(&db, &tables), words);
}

/// Any vote that was counted.
fn some_vote(contest: &Contest<Occ>, tx: &Tx<'_, Occ>) -> Result<Vote, Abort> {
    Ok(contest.votes.iter(tx, candide::Whole).next().expect("votes")?.1)
}

#[test]
fn commits_that_nobody_accounts_for_are_noticed() {
    let (db, tables) = honest();
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
        (0..3).try_for_each(|number| contest.votes.insert(tx, Vote { id: u64::MAX - number, ..vote }))
    });
    assert_noticed("1 contestants have a count in a state that is not", |contest, tx| {
        let Vote { contestant, state, .. } = some_vote(contest, tx)?;
        contest.state_counts.update(tx, &InState { contestant, state }, StateCount::VOTES.add(1))
    });
    assert_noticed("1 contestants have no count in a state", |contest, tx| {
        let Vote { contestant, state, .. } = some_vote(contest, tx)?;
        contest.state_counts.delete(tx, &InState { contestant, state })
    });
    assert_noticed("contestants or area codes are not those", |contest, tx| contest.contestants.delete(tx, &6));
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

/// All counts of contestants after some transactions on one thread.
fn outcome<P: Protocol>(updates: bool) -> Vec<StateCount> {
    let db = database::<P>(updates, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, STEPS);
    let mut rows = Vec::new();
    tables.contest.state_counts.for_each_quiescent(|row| rows.push(*row)).expect("nothing runs");
    rows.sort_unstable_by_key(|row| (row.place.contestant, *row.place.state.as_bytes()));
    rows
}

#[test]
fn one_thread_leaves_the_same_state_under_every_protocol_and_switch() {
    let expected = outcome::<Serial>(true);
    for updates in [true, false] {
        assert_eq!(outcome::<Serial>(updates), expected);
        assert_eq!(outcome::<Occ>(updates), expected);
        assert_eq!(outcome::<TicToc>(updates), expected);
        assert_eq!(outcome::<GlobalLock>(updates), expected);
    }
}
