//! Sessions, by which threads run transactions.

#![forbid(unsafe_code)]

use super::left::{Left, drop_values};
use super::pending::Pending;
use crate::engine::{InPlace, Protocol, ReadView, TableCore, Versions};
use crate::error::{Abort, Error};
use crate::handle::Handle;
use crate::index::{Found, NodeAt};
use crate::log::Level;
use crate::protocols::DefaultProtocol;
use crate::record::{PlacedUnit, RecordAt};
use crate::schema::Words;
use crate::shared::Inner;
use crate::stats::Stats;
use crate::sync::{Point, is_in_step, pass};
#[cfg(all(test, not(loom)))]
use crate::txn::State;
use crate::txn::{Conflict, Outcome, RunOptions, Tx, TxnRunner};
use crossbeam_utils::CachePadded;
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// A session of one thread: it runs the thread's transactions, keeps their memory, and counts their
/// outcomes.
///
/// A session can move to another thread between transactions. An idle session holds no lock, no pin
/// and no garbage. Neither does a dropped session, even if a panic or the end of its thread has
/// dropped it.
pub struct Session<P: Protocol = DefaultProtocol> {
    inner: Handle<P>,
    /// On cache lines of its own, since sessions that are made one after another are often used by
    /// different threads.
    core: Box<CachePadded<TxnRunner<P>>>,
}

impl<P: Protocol> Session<P> {
    pub(crate) fn new(inner: &Handle<P>) -> Result<Session<P>, Error> {
        if is_in_step() {
            return Err(Abort::Nested.into());
        }
        inner.admit()?;
        Ok(Session { inner: inner.clone(), core: Box::new(CachePadded::new(inner.join())) })
    }

    #[doc = include_str!("run_docs/run.txt")]
    #[inline]
    pub fn run<T>(&mut self, body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>) -> Result<T, Abort> {
        self.try_run(body)
    }

    #[doc = include_str!("run_docs/try_run.txt")]
    #[inline]
    pub fn try_run<T, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_as(const { &RunOptions::new() }, ReadView::Current, body)
    }

    #[doc = include_str!("run_docs/read_view.txt")]
    #[inline]
    pub fn read_view<T>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
    ) -> Result<T, Abort> {
        self.run_as(const { &RunOptions::new() }, ReadView::AtBegin, body)
    }

    #[doc = include_str!("run_docs/run_logged.txt")]
    pub fn run_logged<T>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, Abort>,
    ) -> Pending<T> {
        self.try_run_logged(body)
    }

    #[doc = include_str!("run_docs/try_run_logged.txt")]
    pub fn try_run_logged<T, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let options = RunOptions::new().acknowledge(Level::Memory);
        self.run_as_logged(&options, ReadView::Current, body)
    }

    /// Runs a transaction with a given read view.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn run_as<T, E: From<Abort>>(
        &mut self,
        options: &RunOptions<'_>,
        read_view: ReadView,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        // Without optimization, what runs a transaction is compiled once for all closures.
        #[cfg(debug_assertions)]
        let body: &mut dyn FnMut(&Tx<'_, P>) -> Result<T, E> = &mut { body };
        let engine = &self.inner.engine;
        let mut left = Left::of(engine);
        let value = self.core.run_counted(engine, options, read_view, &left.effects, body)?;
        left.run_all();
        Ok(value)
    }

    /// Runs a transaction with a given read view. The transaction's result may not be durable yet.
    pub(crate) fn run_as_logged<T, E: From<Abort>>(
        &mut self,
        options: &RunOptions<'_>,
        read_view: ReadView,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Pending<T, E> {
        let result = self.run_as(options, read_view, body);
        let awaited = self.core.awaited(&self.inner.engine);
        Pending::new(result, awaited, &self.inner)
    }

    /// Sets the level of durability for which this session's later transactions wait, in a database
    /// that is [open](crate::Database::open). Until then it is that of
    /// [`LogOptions::acknowledge`](crate::LogOptions::acknowledge); a transaction can still choose
    /// another level by [`RunOptions::acknowledge`]. In a database without a log, other levels than
    /// [`Level::Replicated`] have no effect.
    ///
    /// ```
    /// # use candide::{Database, Level, Record};
    /// # #[derive(Record, Clone, Copy)]
    /// # struct Reading { #[key] id: u64, value: i64 }
    /// # let directory = std::env::temp_dir().join(format!("candide-doc-level-{}", std::process::id()));
    /// let db = Database::open(&directory)?;
    /// let readings = db.table::<Reading>("readings")?;
    /// let mut session = db.session()?;
    /// session.set_acknowledge(Level::Memory)?;
    /// for id in 0..100 {
    ///     session.run(|tx| readings.insert(tx, Reading { id, value: 0 }))?;
    /// }
    /// db.sync()?; // one wait for all of them
    /// # drop((db, readings, session));
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotReplicated`]: there is no copy of the log elsewhere. The level is as before.
    pub fn set_acknowledge(&mut self, level: Level) -> Result<(), Error> {
        if level == Level::Replicated && !self.inner.is_replicated() {
            return Err(Error::NotReplicated);
        }
        self.acknowledge_at(level);
        Ok(())
    }

    /// Sets the level for which transactions wait, which needs no copy of the log elsewhere.
    pub(crate) fn acknowledge_at(&mut self, level: Level) {
        self.core.set_acknowledge(level);
    }

    /// Lets the session's transactions write, in a database that follows another one.
    pub(crate) fn admit_writes(&mut self) {
        self.core.admit_writes();
    }

    /// Returns the largest stamp on which the result of the last transaction rests.
    #[cfg(test)]
    pub(crate) fn rests_on(&mut self) -> u64 {
        self.core.rests_on(&self.inner.engine).expect("the database has a log")
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn state_for_tests(&mut self) -> &mut State<P> {
        self.core.state.get_mut()
    }

    /// As [`Session::run`], for a transaction that is expected to take long. All such transactions
    /// share the code of this function.
    #[inline(never)]
    pub(crate) fn run_body(
        &mut self,
        body: &mut dyn FnMut(&Tx<'_, P>) -> Result<(), Abort>,
    ) -> Result<(), Abort> {
        self.run(body)
    }

    /// Reads a unit outside a transaction, or returns `None` if a transaction is needed; see
    /// [`TxnRunner::single_read`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn single_read(
        &mut self,
        table: &TableCore,
        key: &[u64],
        unit: PlacedUnit,
        copy: impl FnMut(Words<'_>),
    ) -> Option<bool> {
        let seen = self.core.single_read(&self.inner.engine, table, key, unit, copy);
        if seen.is_some() {
            pass(Point::Unpinned);
        }
        seen
    }

    pub(crate) fn inner(&self) -> &Handle<P> {
        &self.inner
    }

    /// Returns the keys of all records, present or absent, that are linked during the whole call.
    /// The words of the keys follow one another.
    pub(crate) fn linked_keys(&mut self, table: &TableCore) -> Vec<u64> {
        let (epochs, slot) = (&self.inner.engine.epochs, &self.core.public.slot);
        let key_words = table.layout.key_words();
        let mut keys = Vec::new();
        epochs.pin(slot);
        table
            .index
            .for_each(&mut |record| keys.extend_from_slice(record.key_words(key_words).as_slice()));
        epochs.unpin(slot);
        keys
    }

    /// Collects the session's garbage now, as far as no transaction and no snapshot needs it.
    pub(crate) fn collect_garbage(&mut self) {
        self.inner.collect_of(&mut self.core);
    }

    /// Returns the highest timestamp at which a transaction has read a row of `table`, or the
    /// absence of a row.
    pub(crate) fn seen_until(&mut self, table: &TableCore) -> u64 {
        let clock = &self.inner.clone().engine.clock;
        let (mut nodes, mut units) = (0, 0);
        self.go_through(
            table,
            &mut |node| nodes = P::node_rts(clock, node).max(nodes),
            &mut |record| units = P::rts(clock, table.layout.first_of(record)).max(units),
        );
        nodes.max(units)
    }

    /// Raises the rts of each node of the index of `table` to at least `time`; returns whether any
    /// node had a lower rts.
    pub(crate) fn see_nodes_until(&mut self, table: &TableCore, time: u64) -> bool {
        let clock = &self.inner.clone().engine.clock;
        let mut any = false;
        self.go_through(
            table,
            &mut |node| any |= P::raise_node_rts(clock, node, time),
            &mut |_| (),
        );
        any
    }

    fn go_through(
        &self,
        table: &TableCore,
        node: &mut dyn FnMut(NodeAt),
        record: &mut dyn FnMut(RecordAt),
    ) {
        let (epochs, slot) = (&self.inner.engine.epochs, &self.core.public.slot);
        epochs.pin(slot);
        table.index.go_through(table.layout.key_words(), node, record);
        epochs.unpin(slot);
    }

    /// Returns the length of the longest version chain among the units of the row with this key;
    /// `None` if there is no such row.
    ///
    /// # Errors
    /// As [`Table::versions_of`](super::table::Table::versions_of). `inner` is the table's
    /// database.
    pub(crate) fn versions_of(
        &mut self,
        inner: &Arc<Inner<P>>,
        table: &TableCore,
        key: &[u64],
    ) -> Result<Option<usize>, Abort> {
        if !Arc::ptr_eq(inner, &self.inner) {
            return Err(Abort::ForeignTable);
        }
        table.check_key(key);
        let engine = &self.inner.engine;
        let core: &mut TxnRunner<P> = &mut self.core;
        P::InPlace::enter(&engine.clock, None)?;
        engine.epochs.pin(&core.public.slot);
        let attempt = &core.state.get_mut().attempt;
        let versions = match table.index.find(key) {
            Found::Record(record) => {
                let mut lengths = table.layout.cells(record).map(|at| match P::Versions::WORDS {
                    0 => P::is_present(attempt, at).then_some(1),
                    _ => P::Versions::chain_length(&engine.clock, attempt, at),
                });
                // The cell of the first unit shows whether the row exists. The row may be deleted
                // before the other units are read.
                lengths.next().flatten().map(|first| lengths.flatten().fold(first, usize::max))
            }
            // The key had no record at one moment of this call, and so no row.
            Found::Nothing { .. } => None,
        };
        engine.epochs.unpin(&core.public.slot);
        P::InPlace::leave(&engine.clock);
        Ok(versions)
    }

    #[cfg(test)]
    pub(crate) fn core_for_tests(&self) -> &TxnRunner<P> {
        &self.core
    }

    /// Returns the session's number, by which [`Health`](crate::report::Health) and histories name
    /// it. No other session of the database has, or ever had, this number.
    pub fn number(&self) -> u64 {
        self.core.public.session
    }

    /// Returns the counts of this session so far.
    pub fn stats(&self) -> Stats {
        self.core.public.counters.read()
    }

    /// Returns where the session's last conflict was, in any of its transactions; `None` if it
    /// never had one. While a transaction runs, [`Tx::last_conflict`] returns the conflict that
    /// ended its previous attempt.
    pub fn last_conflict(&self) -> Option<Conflict> {
        let note = self.core.state.borrow().last_conflict?;
        Some(Conflict::named(&self.inner.engine, note))
    }

    /// Returns the session's last outcome, with the names of table, key and column: of an operation
    /// in any of its transactions, or the one in which a transaction has ended. `None` if it never
    /// had one. [`Tx::last_outcome`] returns it to a closure.
    pub fn last_outcome(&self) -> Option<Outcome> {
        Outcome::last(&self.inner.engine, &self.core.state.borrow().writes.outcomes)
    }
}

impl<P: Protocol> Drop for Session<P> {
    fn drop(&mut self) {
        self.inner.leave(&mut self.core);
        self.inner.dismiss();
        drop_values(&self.inner.engine, self.inner.take_unwanted());
    }
}

impl<P: Protocol> std::fmt::Debug for Session<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("protocol", &self.inner.engine.properties.name)
            .field("number", &self.number())
            .field("commits", &self.stats().commits)
            .finish_non_exhaustive()
    }
}

/// A session that a thread keeps for `Database::run`. Such a session has only a weak reference to
/// its database, and is no handle: it keeps neither the database open nor its memory.
struct Cached<P: Protocol> {
    inner: Weak<Inner<P>>,
    core: Box<CachePadded<TxnRunner<P>>>,
}

impl<P: Protocol> Drop for Cached<P> {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.leave(&mut self.core);
            inner.dismiss();
        }
    }
}

/// An entry of a [`List`]: the session that a thread keeps for a database. `session` is `None`
/// while that session is in use.
struct Entry {
    session: Option<Box<dyn Any>>,
    is_alive: fn(&dyn Any) -> bool,
}

/// The sessions that a thread keeps, by the number of the database.
struct List {
    entries: BTreeMap<u64, Entry>,
    /// The number of the database whose entry was last checked for being stale.
    looked_to: u64,
}

thread_local! {
    static CACHED: RefCell<List> = const {
        RefCell::new(List { entries: BTreeMap::new(), looked_to: 0 })
    };
}

/// The number of a thread's sessions that are examined after each transaction. A transaction adds
/// at most one session, so sessions of dropped databases do not accumulate.
const LOOKED_AT: usize = 2;

/// The result of looking up a database in a thread's list.
enum Place<P: Protocol> {
    Session(Box<Cached<P>>),
    Unknown,
    InUse,
    /// The thread is ending and its list has been dropped.
    NoList,
}

/// Runs a transaction with this thread's session for the database.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn run_cached<T, E: From<Abort>, P: Protocol>(
    inner: &Arc<Inner<P>>,
    options: &RunOptions<'_>,
    read_view: ReadView,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> Result<T, E> {
    // Without optimization, what runs a transaction is compiled once for all closures.
    #[cfg(debug_assertions)]
    let body: &mut dyn FnMut(&Tx<'_, P>) -> Result<T, E> = &mut { body };
    run_cached_then(inner, options, read_view, body, end_at_once).0
}

/// Returns the last outcome of this thread's session for the database.
pub(crate) fn last_outcome_of_thread<P: Protocol>(inner: &Inner<P>) -> Option<Outcome> {
    let last = CACHED.try_with(|list| {
        let list = list.try_borrow().ok()?;
        let session = list.entries.get(&inner.engine.id)?.session.as_ref()?;
        let session = session.downcast_ref::<Cached<P>>()?;
        Outcome::last(&inner.engine, &session.core.state.borrow().writes.outcomes)
    });
    last.ok().flatten()
}

/// Does nothing, as the function that [`run_cached_then`] calls at the end. This function is no
/// closure, since each closure here would be of a type of its own for each `body`.
#[inline]
fn end_at_once<P: Protocol>(_: &mut TxnRunner<P>) {}

/// Runs a transaction as [`Database::run_logged`](super::Database::run_logged) does.
pub(crate) fn run_cached_logged<T, E: From<Abort>, P: Protocol>(
    inner: &Handle<P>,
    options: &RunOptions<'_>,
    read_view: ReadView,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
) -> Pending<T, E> {
    // Without optimization, what runs a transaction is compiled once for all closures.
    #[cfg(debug_assertions)]
    let body: &mut dyn FnMut(&Tx<'_, P>) -> Result<T, E> = &mut { body };
    let at_end = |core: &mut TxnRunner<P>| core.awaited(&inner.engine);
    let (result, awaited) = run_cached_then(inner, options, read_view, body, at_end);
    Pending::new(result, awaited.flatten(), inner)
}

/// Runs a transaction with this thread's session for the database, and calls `at_end` before the
/// session is given back. Returns the results of both; no result of `at_end` if there was no
/// session.
#[cfg_attr(not(debug_assertions), inline(always))]
fn run_cached_then<T, E: From<Abort>, P: Protocol, X>(
    inner: &Arc<Inner<P>>,
    options: &RunOptions<'_>,
    read_view: ReadView,
    body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    at_end: impl FnOnce(&mut TxnRunner<P>) -> X,
) -> (Result<T, E>, Option<X>) {
    let database = inner.engine.id;
    let place = CACHED.try_with(|list| {
        let mut list = list.borrow_mut();
        match list.entries.get_mut(&database) {
            Some(entry) => entry.session.take().map_or(Place::InUse, |session| {
                Place::Session(session.downcast().expect("databases are numbered uniquely"))
            }),
            None => Place::Unknown,
        }
    });
    let session = match place.unwrap_or(Place::NoList) {
        Place::InUse => return (Err(Abort::Nested.into()), None),
        Place::Session(session) => session,
        Place::Unknown | Place::NoList => match new_cached(inner) {
            Ok(session) => session,
            Err(abort) => return (Err(abort.into()), None),
        },
    };
    // Dropped after the session is given back, also by a panic: values, and what steps hold, may
    // run transactions.
    let mut left = Left::of(&inner.engine);
    let is_kept = !inner.engine.properties.one_session;
    let mut lent = Lent { session: Some(session), database, is_kept };
    let session = lent.session.as_mut().expect("given back only on drop");
    let result = session.core.run_counted(&inner.engine, options, read_view, &left.effects, body);
    let ended = at_end(&mut session.core);
    // The session goes back to the list first: effects may run transactions of their own with it.
    drop(lent);
    if result.is_ok() {
        left.run_all();
    }
    (result, Some(ended))
}

/// Makes a session for the thread's list, and returns it. In the list, the session counts as in
/// use.
#[cold]
#[inline(never)]
fn new_cached<P: Protocol>(inner: &Arc<Inner<P>>) -> Result<Box<Cached<P>>, Abort> {
    if is_in_step() {
        return Err(Abort::Nested);
    }
    // Only a protocol that allows one session refuses another one. The first session exists
    // already, and may be in a transaction.
    inner.admit().map_err(|_| Abort::SecondSession)?;
    let core = Box::new(CachePadded::new(inner.join()));
    announce::<P>(inner.engine.id);
    Ok(Box::new(Cached { inner: Arc::downgrade(inner), core }))
}

/// A session taken from the thread's list. Dropping this value, also by a panic, returns the
/// session to the list.
struct Lent<P: Protocol> {
    session: Option<Box<Cached<P>>>,
    database: u64,
    is_kept: bool,
}

impl<P: Protocol> Drop for Lent<P> {
    #[inline]
    fn drop(&mut self) {
        // If the protocol allows only one session, a kept session would keep all other threads out.
        let kept = self.session.take().filter(|_| self.is_kept);
        let mut session: Option<Box<dyn Any>> = kept.map(|session| session as Box<dyn Any>);
        let has_others = CACHED.try_with(|list| {
            let mut list = list.borrow_mut();
            match (list.entries.get_mut(&self.database), session.take()) {
                (Some(entry), Some(session)) => entry.session = Some(session),
                _ => drop(list.entries.remove(&self.database)),
            }
            list.entries.len() > 1
        });
        if has_others == Ok(true) {
            drop_stale();
        }
    }
}

/// Adds an entry for a database to the thread's list. Its session counts as in use.
fn announce<P: Protocol>(database: u64) {
    let is_alive = |session: &dyn Any| {
        session.downcast_ref::<Cached<P>>().is_some_and(|session| session.inner.strong_count() > 0)
    };
    // Without a list (the thread is ending) the session is used once and dropped.
    let _ = CACHED.try_with(|list| {
        list.borrow_mut().entries.insert(database, Entry { session: None, is_alive })
    });
}

/// Examines the next few sessions in the thread's list, and drops those whose databases have been
/// dropped. The sessions are dropped after the borrow of the list has ended.
#[inline(never)]
fn drop_stale() {
    let stale = CACHED.try_with(|list| list.borrow_mut().next_stale());
    drop(stale);
}

impl List {
    /// Examines the next few entries of the list; removes and returns those whose databases have
    /// been dropped.
    fn next_stale(&mut self) -> [Option<Entry>; LOOKED_AT] {
        std::array::from_fn(|_| {
            let next = self
                .entries
                .range(self.looked_to + 1..)
                .next()
                .or_else(|| self.entries.iter().next());
            let (&database, entry) = next?;
            self.looked_to = database;
            let is_stale =
                entry.session.as_ref().is_some_and(|session| !(entry.is_alive)(session.as_ref()));
            if is_stale { self.entries.remove(&database) } else { None }
        })
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static LOOKED_AT_SO_FAR: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn sessions_of_dropped_databases_leave_the_list_of_their_thread() {
        let is_alive = |session: &dyn Any| {
            LOOKED_AT_SO_FAR.set(LOOKED_AT_SO_FAR.get() + 1);
            session.downcast_ref() != Some(&"gone")
        };
        let entry = |session: &'static str| Entry { session: Some(Box::new(session)), is_alive };
        let mut list = List { entries: BTreeMap::new(), looked_to: 0 };
        list.entries.extend(
            (1..=1_000)
                .map(|number| (number, entry(if number % 10 == 0 { "gone" } else { "there" }))),
        );
        list.entries.insert(1_001, Entry { session: None, is_alive });
        let gone = |list: &mut List| list.next_stale().into_iter().flatten().count();
        let dropped: usize = (0..400).map(|_| gone(&mut list)).sum();
        assert_eq!((dropped, LOOKED_AT_SO_FAR.get()), (80, 400 * LOOKED_AT));
        let dropped: usize = (0..700).map(|_| gone(&mut list)).sum();
        assert_eq!((dropped, list.entries.len()), (20, 901), "each has had its turn");
        assert!(LOOKED_AT_SO_FAR.get() <= 1_100 * LOOKED_AT);
        // Here a database is created and dropped with each transaction.
        for number in 2_000..4_000 {
            list.entries.insert(number, entry("gone"));
            drop(list.next_stale());
        }
        assert!(list.entries.len() < 2_000, "{} are kept", list.entries.len());
    }
}
