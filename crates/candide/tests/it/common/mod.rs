//! Functions that run tests under protocols, and the modules that these tests share with the
//! engine's own tests.

#[path = "../../../src/tests/indexed_rows.rs"]
mod indexed_rows;
#[path = "../../../src/tests/rows.rs"]
mod rows;
#[path = "../../../src/tests/seats.rs"]
mod seats;
#[path = "../../../src/tests/threads.rs"]
mod threads;
#[path = "../../../src/tests/transactions.rs"]
mod transactions;
#[path = "../../../src/tests/waiting.rs"]
mod waiting;

pub(crate) use indexed_rows::{Filed, Order, Parcel};
pub(crate) use rows::{Item, OfCount};
pub(crate) use seats::{Coat, Seat, check_index, seat};
pub(crate) use threads::spawn;
pub(crate) use transactions::{CONFLICT, ONCE, run};
pub(crate) use waiting::{eventually, eventually_with, receive};

use candide::any::{Chosen, Erased};
use candide::experiments::Timestamps;
use candide::protocols::Properties;
use candide::{Abort, Builder, Database, Protocol, Record, RunOptions, Table};
use std::any::Any;
use std::cell::{Cell, RefCell};

thread_local! {
    /// The policy of the databases that a test builds.
    static POLICY: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
    /// Whether the databases that a test builds take timestamps from the system's clock.
    static BY_THE_CLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test. The databases that it builds have `policy`. The test is a function
/// pointer: otherwise this function would be compiled once for each test.
pub(crate) fn under<P: Protocol, T>(policy: P::Policy, test: fn() -> T) -> T {
    POLICY.set(Some(Box::new(policy)));
    let result = test();
    POLICY.set(None);
    result
}

/// Runs a test. Its databases call the protocol through the table of functions of [`Erased`].
pub(crate) fn under_erased<P: Protocol, T>(policy: P::Policy, test: fn() -> T) -> T {
    under::<Erased, T>(Chosen::of::<P>(policy), test)
}

/// Runs a test whose databases take timestamps from the system's clock.
pub(crate) fn by_the_clock<T>(test: impl FnOnce() -> T) -> T {
    BY_THE_CLOCK.set(true);
    let result = test();
    BY_THE_CLOCK.set(false);
    result
}

/// Returns the policy of the databases that the test builds: the one set by `under`, or else the
/// default.
fn policy<P: Protocol>() -> P::Policy {
    POLICY.with_borrow(|policy| {
        policy.as_ref().and_then(|policy| policy.downcast_ref().cloned()).unwrap_or_default()
    })
}

/// Returns the properties of the databases that the test builds.
pub(crate) fn properties<P: Protocol>() -> Properties {
    P::properties(&policy::<P>())
}

/// Returns a builder for a database of the test.
pub(crate) fn builder<P: Protocol>() -> Builder<P> {
    let builder = Database::<P>::builder().policy(policy::<P>());
    if BY_THE_CLOCK.get() { builder.timestamps(Timestamps::Clock) } else { builder }
}

/// Options for a transaction that may meet the collector, which takes records of deleted rows out
/// of their indexes, but meets no other conflict.
pub(crate) const FEW_TIMES: fn() -> RunOptions<'static> = || RunOptions::new().attempts_max(20);

/// Returns the value of a transaction that must not fail.
pub(crate) fn ok<T>(result: Result<T, Abort>) -> T {
    result.unwrap_or_else(|abort| panic!("{abort}"))
}

/// Builds a database with a table.
pub(crate) fn database_with<R: Record, P: Protocol>(name: &str) -> (Database<P>, Table<R, P>) {
    let db = builder::<P>().build().unwrap();
    let table = db.table::<R>(name).unwrap();
    (db, table)
}

/// Builds a database with a table of seats.
pub(crate) fn scene<P: Protocol>() -> (Database<P>, Table<Seat, P>) {
    database_with("seats")
}

/// Returns the factor by which tests run longer than usual: `n` if `CANDIDE_STRESS=n` is set, else
/// 1.
pub(crate) fn stress() -> u64 {
    std::env::var("CANDIDE_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Returns `of`, or a third of `of` unless `CANDIDE_FULL` is set. `of` is a number of samples,
/// rounds or milliseconds.
pub(crate) fn share(of: u64) -> u64 {
    if std::env::var_os("CANDIDE_FULL").is_none() { of / 3 } else { of }
}

/// Returns whether a test runs the case at `place` of a list. Unless `CANDIDE_FULL` is set, a test
/// runs a third of the cases under each protocol. Which third depends on the protocol.
pub(crate) fn is_in_share<P: Protocol>(place: usize) -> bool {
    let sum: usize = properties::<P>().name.bytes().map(usize::from).sum();
    std::env::var_os("CANDIDE_FULL").is_some() || (place + sum).is_multiple_of(3)
}

/// A generator of random numbers, xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    /// Returns a generator whose sequence depends on `seed` alone.
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number that is uniform in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}
