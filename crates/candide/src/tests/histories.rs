//! Histories of many threads, with everything that happens in the life of a row, are serializable as their protocol promises.
//!
//! `CANDIDE_STRESS=n` makes the tests n times as long.

use super::mix::{Judge, Mix};
use super::{ForProtocol, for_each, for_each_by_the_clock};
use crate::history::Recorded;
use crate::protocol::Protocol;
use crate::sync::{Duration, Random};
use crate::{Database, Factor};
use candide_check::Options;

struct RandomHistories {
    /// Transactions of each thread.
    steps: u64,
    /// Timestamp splitting, and bad choices.
    settings: Vec<(bool, Option<Factor>)>,
}

/// More than threads and cores.
const KEYS: u64 = 8;

impl ForProtocol for RandomHistories {
    fn run<P: Protocol>(&self) {
        let stress = std::env::var("CANDIDE_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
        let threads = if P::ONE_SESSION { 1 } else { 6 };
        for &(splitting, factor) in &self.settings {
            let builder = Database::<Recorded<P>>::builder().timestamp_splitting(splitting).factors(factor);
            let db = builder.build().unwrap();
            let mix = Mix::new(db, KEYS);
            let options = Options { strict: P::STRICT, opaque: P::OPAQUE, horizon: 1 << 20 };
            let mut judge = Judge::new(options, format!("{}, splitting {splitting}, {factor:?}", P::NAME));
            std::thread::scope(|scope| {
                let work = |thread| {
                    let mix = &mix;
                    let mut session = mix.db.session().unwrap();
                    scope.spawn(move || {
                        let mut random = Random::seeded(thread << 1 | u64::from(splitting));
                        for _ in 0..self.steps * stress {
                            mix.step(&mut session, &mut random, 5);
                        }
                    })
                };
                let workers: Vec<_> = (0..threads).map(work).collect();
                while !workers.iter().all(|worker| worker.is_finished()) {
                    judge.hear(&mix.db.take_history());
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            judge.hear(&mix.db.take_history());
            let judged = judge.judge();
            assert!(judged >= threads * self.steps * stress, "{judged} transactions were judged");
        }
    }
}

#[test]
fn random_histories_are_what_protocols_promise() {
    let histories = RandomHistories { steps: 3_000, settings: vec![(true, None), (false, None)] };
    for_each(&histories);
    for_each_by_the_clock(&histories);
}

#[test]
fn bad_choices_change_no_promise() {
    for_each(&RandomHistories { steps: 300, settings: Factor::ALL.map(|factor| (true, Some(factor))).to_vec() });
}
