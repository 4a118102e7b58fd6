//! Tests of a long transaction beside short transactions that keep changing its rows, and of the
//! way in which others yield to a transaction that has failed too often.

use super::indexed_rows::Parcel;
use super::properties;
use super::rows::Item;
use super::threads::spawn;
use super::transactions::{CONFLICT, ONCE, run};
use super::waiting::eventually_with;
use crate::engine::Protocol;
use crate::sync::size::share;
use crate::sync::{AtomicBool, AtomicU64, Duration, Ordering, Random, with_patience};
use crate::{Abort, Database, RunOptions};

/// The number of rows that the long transaction reads. Unless `CANDIDE_FULL` is set, the
/// transaction reads a third of them.
const ROWS: u64 = 10_000;
/// The number of threads that update the rows. The number is greater than that of cores.
const WRITERS: u64 = 8;
/// The number of attempts after which a transaction requests the token, to which new commits yield;
/// and some more attempts, for commits in progress and until the token is free. Writers wait for
/// the token without a limit, since the time depends on the machine.
const ATTEMPTS_MAX: u32 = 32 + 64;
/// The time for which a transaction with the token pauses, so that others could interfere.
const PAUSE: Duration = Duration::from_millis(3);
/// The number of long transactions in a row.
const ROUNDS: u64 = 3;

protocol_tests!(concurrent: a_transaction_of_thousands_of_reads_is_not_starved_by_writers);
fn a_transaction_of_thousands_of_reads_is_not_starved_by_writers<P: Protocol>() {
    // A global lock keeps out all other transactions while the long one reads.
    let is_exclusive = properties::<P>().name == "global-lock";
    let rows = share(ROWS);
    let db = Database::<P>::builder().build().unwrap();
    let table = db.table::<Item>("rows").unwrap();
    table.load((0..rows).map(|id| Item::new(id, 0)), crate::LoadOptions::new()).unwrap();
    let (done, updates) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            let (db, table, done, updates) = (&db, &table, &done, &updates);
            let write = move || {
                let mut session = db.session().unwrap();
                let mut random = Random::seeded(thread);
                while !done.load(Ordering::Relaxed) {
                    // Both groups are updated, so that under every protocol an attempt that has
                    // read the row has to notice.
                    let key = random.below(rows);
                    let update = (Item::COUNT.add(1), Item::OTHER.add(1));
                    let updated = session.run(|tx| table.update(tx, &key, update));
                    assert_eq!(updated, Ok(()));
                    updates.fetch_add(1, Ordering::Relaxed);
                }
            };
            spawn(scope, move || with_patience(write));
        }
        let stop = StopAtEnd(&done);
        let updated = || updates.load(Ordering::Relaxed);
        // From here on, all writers are running.
        eventually_with("the writers begin", updated, || updated() >= 1_000);
        let mut session = db.session().unwrap();
        for round in 0..share(ROUNDS) {
            let (before, mut attempts) = (updated(), 0);
            let options = RunOptions::new().attempts_max(ATTEMPTS_MAX);
            let committed = session.with(options).run(|tx| {
                attempts = tx.attempt_number();
                let mut sum = 0;
                for key in 0..rows {
                    if key % 1_000 == 999 && !is_exclusive {
                        let_others_update(&db, &updates);
                    }
                    sum += table.read(tx, &key, Item::COUNT)?;
                }
                table.update(tx, &(round * 100), Item::OTHER.set(sum as u64))
            });
            let others = updated() - before;
            eprintln!("{attempts} attempts, {others} updates meanwhile");
            assert_eq!(committed, Ok(()), "after {attempts} attempts");
        }
        // The writers have not been locked out, either.
        let before = updated();
        eventually_with("the writers go on", updated, || updated() >= before + 1_000);
        drop(stop);
    });
}

/// Waits until some rows have been updated, or writers wait because of the token: otherwise the
/// long transaction might be over before the operating system lets the writers run.
fn let_others_update<P: Protocol>(db: &Database<P>, updates: &AtomicU64) {
    let before = updates.load(Ordering::Relaxed);
    while updates.load(Ordering::Relaxed) < before + 10 {
        // `u64::MAX` is no session's number.
        if db.inner.engine.token.is_others(u64::MAX) {
            return std::thread::sleep(PAUSE);
        }
        std::thread::yield_now();
    }
}

/// A guard that ends the writers when it is dropped, even if the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

protocol_tests!(overlapping: a_scan_step_yields_to_the_token_and_dooms_its_attempt);
fn a_scan_step_yields_to_the_token_and_dooms_its_attempt<P: Protocol>() {
    let db = Database::<P>::builder().manual_epochs(1).build().unwrap();
    let parcels = db.table::<Parcel>("parcels").unwrap();
    let mut session = db.session().unwrap();
    run(&mut session, |tx| parcels.insert_many(tx, (0..10).map(|number| Parcel::new(1, number))));
    db.inner.engine.token.try_take(999);
    // The test asserts this outside of the closure, since the panic of a doomed attempt is
    // discarded.
    let mut told = Vec::new();
    let yielded = session.with(ONCE()).run(|tx| {
        let mut scan = parcels.scan(tx, .., ());
        told.push(scan.next().map(|row| row.map(drop)));
        told.push(Some(parcels.insert_many(tx, (20..30).map(|number| Parcel::new(1, number)))));
        told.extend((0..2).map(|_| scan.next().map(|row| row.map(drop))));
        Ok(())
    });
    db.inner.engine.token.release(999);
    let over = Some(Err(Abort::Yielded));
    assert_eq!(told, [Some(Ok(())), over, over, None], "a doomed scan returns no more rows");
    assert_eq!(
        (yielded, parcels.len_estimate()),
        (CONFLICT, 10),
        "a link would disturb the token's holder"
    );
}
