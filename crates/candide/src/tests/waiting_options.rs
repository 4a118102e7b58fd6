//! Tests of databases whose waits have other lengths than by default.

use super::rows::Item;
use super::threads::spawn;
use crate::engine::Protocol;
use crate::experiments::Waiting;
use crate::protocols::Occ;
use crate::sync::Duration;
use crate::sync::size::share;
use crate::{Database, Error};

/// The number of threads. It is greater than the number of cores.
const THREADS: u64 = 4;
/// The number of transactions of each thread.
const TRANSACTIONS: u64 = 300;

/// Returns the lengths of waits with these bounds of pauses and this number of rounds.
fn lengths([backoff_first, backoff_max]: [Duration; 2], spin_rounds: u32) -> Waiting {
    Waiting { backoff_first, backoff_max, spin_rounds }
}

protocol_tests!(concurrent: a_row_that_all_threads_change_loses_no_update_whatever_the_waits);
fn a_row_that_all_threads_change_loses_no_update_whatever_the_waits<P: Protocol>() {
    let shortest = lengths([Duration::from_nanos(1); 2], 1);
    let longer = lengths([10, 1_000].map(Duration::from_micros), 1_000);
    for waiting in [shortest, longer] {
        let db = Database::<P>::builder().waiting(waiting).build().unwrap();
        assert_eq!(db.inner.engine.options.waiting, waiting);
        let items = db.table::<Item>("items").unwrap();
        assert_eq!(db.run(|tx| items.insert(tx, Item::new(1, 0))), Ok(()));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                spawn(scope, || {
                    let mut session = db.session().unwrap();
                    for _ in 0..share(TRANSACTIONS) {
                        let added = session.run(|tx| {
                            let count = items.read(tx, 1, Item::COUNT)?;
                            // Other threads run between the read and the write, also on one core.
                            std::thread::yield_now();
                            items.update(tx, 1, Item::COUNT.set(count + 1))
                        });
                        assert_eq!(added, Ok(()));
                    }
                });
            }
        });
        let count = db.run(|tx| items.read(tx, 1, Item::COUNT));
        let expected = (THREADS * share(TRANSACTIONS)) as i64;
        assert_eq!(count, Ok(expected), "{}, {waiting:?}", P::NAME);
    }
}

#[test]
fn a_length_out_of_range_is_refused_when_the_database_is_built() {
    let usual = Waiting::default();
    let refused = [
        (
            Waiting { backoff_first: Duration::ZERO, ..usual },
            "backoff_first must be from 1ns to 1s, not 0ns",
        ),
        (
            Waiting { backoff_max: Duration::from_micros(1), ..usual },
            "backoff_max must be from backoff_first, 2µs, to 1s, not 1µs",
        ),
        (Waiting { spin_rounds: 0, ..usual }, "spin_rounds must be from 1 to 1000000, not 0"),
    ];
    let builder = Database::<Occ>::builder();
    for (waiting, problem) in refused {
        let error = builder.clone().waiting(waiting).build().unwrap_err();
        assert_eq!(error, Error::Waiting { problem: problem.to_string() });
        assert_eq!(error.to_string(), problem);
    }
    assert_eq!(builder.build().unwrap().inner.engine.options.waiting, usual);
}
