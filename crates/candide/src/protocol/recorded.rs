//! Histories: what each transaction read and wrote, in which version, for a checker to judge.
//!
//! [`Recorded<P>`] is a protocol that runs `P` and takes notes. A database that does not record is a `Database<P>`, in
//! which no instruction of this file exists.
//!
//! ```
//! use candide::{Abort, Database, Occ, history::Recorded};
//!
//! let db = Database::<Recorded<Occ>>::builder().build()?;
//! db.run(|_| Ok::<_, Abort>(()))?;
//! assert_eq!(db.take_history().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

use super::{Burial, Committed, Context, Missing, Protocol, Seen};
use crate::access::{Intent, WriteSet};
use crate::epoch::Epoch;
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::record::{CellAt, Op, Words};
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use std::marker::PhantomData;

/// Runs transactions by `P` and records their histories.
#[derive(Debug)]
pub struct Recorded<P>(PhantomData<P>);

/// One attempt, committed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its session.
    pub session: u64,
    /// When it began and when it ended, on one clock of all sessions: if one ended before another began, it did so in real
    /// time.
    pub begun: u64,
    /// See [`Transaction::begun`].
    pub ended: u64,
    /// Whether it committed. Transactions that ended in an error of their closure count as committed without writes.
    pub committed: bool,
    /// What it observed, in order.
    pub reads: Vec<Access>,
    /// What it wrote; empty unless it committed.
    pub writes: Vec<Access>,
}

/// One unit of one row, in one version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Access {
    /// The table's number, in the order of creation.
    pub table: u16,
    /// The key, as [`Key::words`](crate::Key::words) gives it.
    pub key: Box<[u64]>,
    /// The column group; zero without splitting.
    pub group: u8,
    /// The version, a number that grows with every write of the unit; `None` if the key had no record, and so was absent in
    /// the first version or in one that had been deleted and forgotten.
    pub version: Option<u64>,
    /// Whether the row existed in that version.
    pub present: bool,
}

/// What a recorded database keeps.
#[derive(Debug, Default)]
pub struct Recorder<C> {
    clock: C,
    time: Ticks,
    transactions: Transactions,
}

#[derive(Debug)]
struct Ticks(AtomicU64);

impl Default for Ticks {
    fn default() -> Ticks {
        Ticks(AtomicU64::new(1))
    }
}

impl Ticks {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[derive(Debug)]
struct Transactions(Mutex<Vec<Transaction>>);

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions(Mutex::new(Vec::new()))
    }
}

/// What a session has noted of its running attempt.
#[derive(Debug, Default)]
pub struct Attempt<A> {
    inner: A,
    begun: u64,
    reads: Vec<Access>,
}

impl<C> Recorder<C> {
    /// What has been recorded since the last call.
    pub(crate) fn take(&self) -> Vec<Transaction> {
        std::mem::take(&mut lock(&self.transactions.0))
    }
}

/// The context for the protocol that does the work.
fn inner<'a, P: Protocol>(context: &'a mut Context<'_, Recorded<P>>) -> Context<'a, P> {
    Context { engine: context.engine, clock: &context.clock.clock, local: context.local }
}

fn access<P: Protocol>(context: &Context<'_, P>, at: CellAt, version: u64, present: bool) -> Access {
    let table = context.engine.table(at.table());
    let key = at.record().key_words(table.layout.key_words());
    let (table, group) = (at.table(), at.unit() as u8);
    Access { table, key: key.as_slice().into(), group, version: Some(version), present }
}

impl<P: Protocol> Recorded<P> {
    fn note(
        context: &Context<'_, Self>,
        attempt: &mut Attempt<P::Attempt>,
        result: Result<Committed, Abort>,
        written: Vec<(CellAt, bool)>,
    ) -> Result<Committed, Abort> {
        let mut writes = Vec::new();
        if let Ok(Committed { version }) = result {
            writes.extend(written.into_iter().map(|(at, present)| access(context, at, version, present)));
        }
        let transaction = Transaction {
            session: context.local.id,
            begun: attempt.begun,
            ended: context.clock.time.next(),
            committed: result.is_ok(),
            reads: std::mem::take(&mut attempt.reads),
            writes,
        };
        lock(&context.clock.transactions.0).push(transaction);
        result
    }
}

impl<P: Protocol> Protocol for Recorded<P> {
    const NAME: &'static str = P::NAME;
    const STRICT: bool = P::STRICT;
    const OPAQUE: bool = P::OPAQUE;
    #[cfg(test)]
    const IN_TEST_FORM: bool = P::IN_TEST_FORM;
    #[cfg(test)]
    const RECLAIMS: bool = P::RECLAIMS;
    const CELL_WORDS: usize = P::CELL_WORDS;
    const NODE_WORDS: usize = P::NODE_WORDS;
    #[cfg(test)]
    const VERSION_WORDS: usize = P::VERSION_WORDS;
    const ONE_SESSION: bool = P::ONE_SESSION;
    type Clock = Recorder<P::Clock>;
    type Attempt = Attempt<P::Attempt>;

    fn enter(clock: &Self::Clock) -> Result<(), Abort> {
        P::enter(&clock.clock)
    }

    fn begin(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt) {
        attempt.reads.clear();
        attempt.begun = context.clock.time.next();
        P::begin(&mut inner(context), &mut attempt.inner);
    }

    fn read(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = P::read(&mut inner(context), &mut attempt.inner, at, copy)?;
        attempt.reads.push(access(context, at, seen.version, seen.present));
        Ok(seen)
    }

    fn mark(attempt: &mut Self::Attempt) -> usize {
        P::mark(&mut attempt.inner)
    }

    fn read_at_mark(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        mark: usize,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = P::read_at_mark(&mut inner(context), &mut attempt.inner, at, mark, copy)?;
        attempt.reads.push(access(context, at, seen.version, seen.present));
        Ok(seen)
    }

    fn read_for_update(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        at: CellAt,
        copy: impl FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        let seen = P::read_for_update(&mut inner(context), &mut attempt.inner, at, copy)?;
        attempt.reads.push(access(context, at, seen.version, seen.present));
        Ok(seen)
    }

    fn peek(attempt: &Self::Attempt, at: CellAt) -> bool {
        P::peek(&attempt.inner, at)
    }

    fn absent(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt, missing: Missing<'_>) -> Result<(), Abort> {
        if let Missing { table, key: Some(key), .. } = missing {
            attempt.reads.push(Access { table, key: key.into(), group: 0, version: None, present: false });
        }
        P::absent(&mut inner(context), &mut attempt.inner, missing)
    }

    fn stage(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
        at: CellAt,
        intent: Intent,
        op: Op,
    ) -> Result<(), Abort> {
        P::stage(&mut inner(context), &mut attempt.inner, writes, at, intent, op)
    }

    fn revalidate(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
    ) -> Result<(), Abort> {
        P::revalidate(&mut inner(context), &mut attempt.inner, writes)
    }

    fn commit(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &mut WriteSet,
    ) -> Result<Committed, Abort> {
        let result = P::commit(&mut inner(context), &mut attempt.inner, writes);
        let made = writes.items().iter().filter(|item| !item.untouched);
        let written = made.map(|item| (item.at, item.present)).collect();
        Self::note(context, attempt, result, written)
    }

    fn abort(context: &mut Context<'_, Self>, attempt: &mut Self::Attempt, writes: &mut WriteSet) {
        P::abort(&mut inner(context), &mut attempt.inner, writes);
        // The reason does not matter here; that it did not commit does.
        let _ = Self::note(context, attempt, Err(Abort::ReadChanged), Vec::new());
    }

    fn renounce(
        context: &mut Context<'_, Self>,
        attempt: &mut Self::Attempt,
        writes: &WriteSet,
        images: &mut Vec<u64>,
    ) -> Result<Option<Abort>, Abort> {
        // What is observed only now is part of what the error is based on.
        for item in writes.items() {
            let seen = P::read(&mut inner(context), &mut attempt.inner, item.at, |_| {})?;
            attempt.reads.push(access(context, item.at, seen.version, seen.present));
        }
        P::renounce(&mut inner(context), &mut attempt.inner, writes, images)
    }

    fn unborn(at: CellAt) {
        P::unborn(at);
    }

    fn born(node: NodeAt, at: CellAt) {
        P::born(node, at);
    }

    fn linked(attempt: &mut Self::Attempt, node: NodeAt, before: u64, after: u64, first: CellAt) {
        P::linked(&mut attempt.inner, node, before, after, first);
    }

    fn divided(attempt: &mut Self::Attempt, change: &NodeChange) {
        P::divided(&mut attempt.inner, change);
    }

    fn left_absent(first: CellAt) -> bool {
        P::left_absent(first)
    }

    fn bury(units: &[CellAt], bound: Epoch) -> Burial {
        P::bury(units, bound)
    }

    fn bequeath(node: NodeAt, at: CellAt) {
        P::bequeath(node, at);
    }
}
