//! Random transactions of several threads, while a logger makes rounds: every prefix is the state
//! of exactly its commits.

use super::super::random_transactions::Mix;
use super::super::threads::spawn;
use super::disk::{Logged, Told};
use super::replay::Replay;
use super::story::{Story, Witness};
use crate::engine::Protocol;
use crate::protocols::Recorded;
use crate::sync::Random;
use crate::sync::size::{share, stress};
use crate::tests::properties;
use crate::{Database, Session};
use std::thread;

/// The number of keys. The number is greater than that of threads, and small enough for conflicts.
const KEYS: u64 = 8;
const THREADS: u64 = 4;
/// The number of times that all threads stop, and the database is compared with the log.
const PAUSES: u64 = 5;
/// The largest number of prefixes that are judged as readers.
const READERS_MAX: usize = 200;

protocol_tests!(all: every_prefix_is_the_state_of_its_commits);
protocol_tests!(
    by_the_clock: every_prefix_is_the_state_of_its_commits_by_the_clock
        = every_prefix_is_the_state_of_its_commits()
);
fn every_prefix_is_the_state_of_its_commits<P: Protocol>() {
    [true, false].into_iter().for_each(random_rounds::<P>);
}

protocol_tests!(erased: every_prefix_is_the_state_of_its_commits_under_erased_protocols);
fn every_prefix_is_the_state_of_its_commits_under_erased_protocols<P: Protocol>() {
    random_rounds::<P>(true);
}

/// Runs random transactions, with timestamp splitting or without.
fn random_rounds<P: Protocol>(splitting: bool) {
    let threads = if properties::<P>().one_session { 1 } else { THREADS };
    let steps = share(300) * stress() / PAUSES;
    let builder = Database::<Recorded<P>>::builder().timestamp_splitting(splitting);
    let logged = Logged::new(builder);
    let mix = Mix::new(logged.db.clone(), KEYS);
    let mut sessions: Vec<_> = (0..threads)
        .map(|thread| {
            let random = Random::seeded(thread << 1 | u64::from(splitting));
            (logged.db.session().unwrap(), random, Witness::default())
        })
        .collect();
    let (session, _, witness) = &mut sessions[0];
    mix.fill(session);
    witness.note(session);
    logged.settle();
    let mut told = vec![logged.told()];
    let mut rounds = Random::seeded(u64::from(splitting));
    for _ in 0..PAUSES {
        thread::scope(|scope| {
            let work = |(session, random, witness): &mut (Session<_>, Random, Witness)| {
                for _ in 0..steps {
                    mix.step(session, random, 5);
                    witness.note(session);
                }
            };
            let workers: Vec<_> =
                sessions.iter_mut().map(|part| spawn(scope, move || work(part))).collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                round(&logged, &mut told);
                (0..rounds.below(20)).for_each(|_| thread::yield_now());
            }
        });
        for _ in 0..3 {
            round(&logged, &mut told);
        }
        let replay = Replay::of(&logged);
        assert!(replay.changes > 0, "{}: nothing is logged", P::NAME);
        replay.assert_is(&logged);
    }
    let story = Story::of(&logged, sessions.into_iter().map(|(_, _, witness)| witness));
    assert!(
        story.len() as u64 >= threads * steps * PAUSES / 2,
        "{}: few results were acknowledged",
        P::NAME
    );
    story.assert_recoverable();
    story.assert_in_order_of_sessions();
    let states = story.assert_prefixes(&logged, &told);
    if logged.db.inner.engine.common.properties.readable_cut {
        let every = states.len().div_ceil(READERS_MAX);
        let seen: Vec<_> = states.into_iter().skip(1).step_by(every).collect();
        story.assert_readable::<P>(&seen);
    }
}

/// Makes a round, and notes the cuts that are reported afterwards.
fn round<P: Protocol>(logged: &Logged<P>, told: &mut Vec<Told>) {
    logged.round();
    let now = logged.told();
    if told.last().is_none_or(|last| last.durable < now.durable) {
        told.push(now);
    }
}
