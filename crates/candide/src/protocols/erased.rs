//! A protocol that is chosen when a database is built. Each function of `Protocol` is called
//! through a table of functions.
//!
//! # Guarantee
//! The guarantee of the chosen protocol: `Erased` adds, drops and reorders nothing.
//!
//! # Use
//! With `Erased`, code that is generic over the protocol is compiled once for all protocols. A
//! single read takes some 60 instructions more than under the protocol itself, so measurements name
//! their protocol statically.
//!
//! # Source
//! None. `Protocol` is the right place for type erasure, since its functions take cells and words,
//! and know no row type.

#![forbid(unsafe_code)]

use super::forward::{for_each_function, type_of};
use super::list::DefaultProtocol;
use crate::access::{ChangeSink, Failure, Intent, WriteSet};
use crate::engine::{
    Absence, Applied, Backlog, Committed, Context, Due, GcOutcome, InPlace, Missing, Parts,
    Properties, Protocol, Replaced, Seen, TableCore, Unwatched, Versions, Watch,
};
use crate::epoch::{Epoch, Epochs, Moment};
use crate::error::Abort;
use crate::index::{NodeAt, NodeChange};
use crate::log::LogTurn;
use crate::record::CellAt;
use crate::schema::{NumberRange, Op, Words};
use crate::stats::LockCounters;
use crate::sync::AtomicU64;
use crate::sync::Instant;
use crate::timestamps::Timestamps;
use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A protocol that is chosen at run time, by [`Builder::policy`](crate::Builder::policy) or by
/// [`AnyDatabase::choose`](crate::any::AnyDatabase). The default is `Occ`.
///
/// Transactions are serializable as under the chosen protocol, but slower, since `Erased` calls
/// functions through pointers. Databases of `Erased` have no [snapshots](crate::Snapshot).
///
/// ```
/// use candide::any::{Chosen, Erased};
/// use candide::{Database, Mvto, Record};
///
/// #[derive(Record, Clone, Copy)]
/// struct Counter { #[key] id: u64, count: u64 }
///
/// let db = Database::<Erased>::builder().policy(Chosen::of::<Mvto>(())).build()?;
/// let counters = db.table::<Counter>("counters")?;
/// db.run(|tx| counters.insert(tx, Counter { id: 1, count: 7 }))?;
/// assert_eq!(db.run(|tx| counters.read(tx, 1, Counter::COUNT)), Ok(7));
/// assert_eq!(db.properties().name, "mvto");
/// # Ok::<(), candide::Error>(())
/// ```
#[derive(Debug)]
pub struct Erased;

/// A function that makes a database's part of a protocol.
type Make = dyn Fn(Timestamps, &Arc<Epochs>) -> Box<dyn Base> + Send + Sync;

/// A protocol and its policy, for [`Erased`] to run. `"mvcc".parse::<Chosen>()` chooses by name.
#[derive(Clone)]
pub struct Chosen {
    properties: Properties,
    make: Arc<Make>,
}

impl Chosen {
    /// Chooses protocol `P`, with a policy of `P`.
    pub fn of<P: Protocol>(policy: P::Policy) -> Chosen {
        Chosen {
            properties: P::properties(&policy),
            make: Arc::new(move |timestamps, epochs| {
                Box::new(BaseOf::<P>(P::clock(&policy, timestamps, epochs)))
            }),
        }
    }

    /// Returns the properties of databases that run the chosen protocol.
    pub fn properties(&self) -> Properties {
        self.properties
    }
}

impl Default for Chosen {
    fn default() -> Chosen {
        #[cfg(test)]
        if let Some(chosen) = in_tests::chosen() {
            return chosen;
        }
        Chosen::of::<DefaultProtocol>(Default::default())
    }
}

impl Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Chosen").field(&self.properties.name).finish()
    }
}

/// Expands to the type of a parameter in [`Base`] and [`Running`], which have no generic functions.
macro_rules! dyn_type {
    (Context) => { &mut Context<'_, Erased> };
    (Clock) => { &dyn Base };
    (Copy) => { &mut dyn FnMut(Words<'_>) };
    (Sink) => { &mut dyn ChangeSink };
    (Cells) => { &[CellAt] };
    ($type:tt) => { type_of!($type) };
}

/// Declares a function that needs no attempt.
macro_rules! declare_in_base {
    (
        $of:tt $name:ident [$($before:ident: $b:tt),*] [$(clock: Clock)?]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        #[doc(hidden)]
        fn $name(&self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)?;
    };
    ($($of_an_attempt:tt)*) => {};
}

/// Declares a function that works on an attempt.
macro_rules! declare_in_running {
    (
        $of:tt $name:ident [$($before:ident: $b:tt),*] [attempt: AttemptMut]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        #[doc(hidden)]
        fn $name(&mut self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)?;
    };
    (
        $of:tt $name:ident [$($before:ident: $b:tt),*] [attempt: Attempt]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        #[doc(hidden)]
        fn $name(&self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)?;
    };
    ($($of_a_database:tt)*) => {};
}

/// The database's part of a protocol, with the protocol's functions that need no attempt.
pub trait Base: Any + Send + Sync + Debug {
    #[doc(hidden)]
    fn table_locks(&self) -> Option<Arc<dyn Any + Send + Sync>>;
    #[doc(hidden)]
    fn attempt(&self, counts: &Arc<LockCounters>) -> Box<dyn Running>;
    #[doc(hidden)]
    fn collect(
        &self,
        context: &mut Context<'_, Erased>,
        backlog: &mut ErasedBacklog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    );
    for_each_function!(all: declare_in_base);
}

/// The session's part of a protocol, with the protocol's functions that work on an attempt.
pub trait Running: Send {
    for_each_function!(all: declare_in_running);
}

/// The [`SessionVersions`](crate::engine::Parts) of the chosen protocol; empty until that protocol
/// has asked for them.
#[derive(Debug, Default)]
pub struct ErasedSession(Option<Box<dyn Session>>);

/// The [`Backlog`](crate::engine::Backlog) of the chosen protocol; empty until that protocol has
/// asked for it.
#[derive(Debug, Default)]
pub struct ErasedBacklog(Option<Box<dyn AnyBacklog>>);

/// The functions of a protocol that work on a session's data about old versions.
trait Session: Any + Send + Debug {
    fn leaves_some(&self) -> bool;
    fn leave_values(&mut self, replaced: &mut Vec<Replaced>);
    fn leave_behind(
        &mut self,
        epochs: &Epochs,
        backlog: &mut ErasedBacklog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize;
}

/// The functions of a protocol that work on its [`Backlog`](crate::engine::Backlog).
trait AnyBacklog: Any + Send + Debug {
    fn is_empty(&self) -> bool;
    fn len(&self) -> usize;
    fn is_due(&self, horizon: Epoch) -> bool;
    fn has_to_collect(&self, horizon: Epoch) -> bool;
    fn take_over(&mut self, left: Box<dyn AnyBacklog>) -> usize;
    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64));
    fn has_released(&self) -> bool;
    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>);
}

/// A session's data about old versions, under protocol `P`.
#[derive(Debug)]
struct SessionOf<P: Protocol>(P::SessionVersions);

/// A backlog of protocol `P`.
#[derive(Debug)]
struct BacklogOf<P: Protocol>(P::Backlog);

impl ErasedSession {
    /// Returns the session's data of `P`, the chosen protocol.
    fn of<P: Protocol>(&mut self) -> &mut P::SessionVersions {
        let make = || -> Box<dyn Session> { Box::new(SessionOf::<P>(Default::default())) };
        let session: &mut dyn Any = &mut **self.0.get_or_insert_with(make);
        &mut session.downcast_mut::<SessionOf<P>>().expect("a session runs one protocol").0
    }
}

impl ErasedBacklog {
    /// Returns the backlog of `P`, the chosen protocol.
    fn of<P: Protocol>(&mut self) -> &mut P::Backlog {
        let make = || -> Box<dyn AnyBacklog> { Box::new(BacklogOf::<P>(Default::default())) };
        let backlog: &mut dyn Any = &mut **self.0.get_or_insert_with(make);
        &mut backlog.downcast_mut::<BacklogOf<P>>().expect("a session runs one protocol").0
    }
}

impl Backlog for ErasedBacklog {
    fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|backlog| backlog.is_empty())
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |backlog| backlog.len())
    }

    fn is_due(&self, horizon: Epoch) -> bool {
        self.0.as_ref().is_some_and(|backlog| backlog.is_due(horizon))
    }

    fn take_over(&mut self, left: ErasedBacklog) -> usize {
        match (&mut self.0, left.0) {
            (_, None) => 0,
            (Some(backlog), Some(left)) => backlog.take_over(left),
            (None, Some(left)) => {
                let count = left.len();
                self.0 = Some(left);
                count
            }
        }
    }

    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64)) {
        let backlog = self.0.as_mut().expect("a collection has asked for it");
        backlog.park(snapshot, at, queued);
    }

    fn has_released(&self) -> bool {
        self.0.as_ref().is_some_and(|backlog| backlog.has_released())
    }

    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        if let Some(backlog) = &mut self.0 {
            backlog.take_released(before, most, into);
        }
    }
}

impl<P: Protocol> Session for SessionOf<P> {
    fn leaves_some(&self) -> bool {
        P::Versions::leaves_some(&self.0)
    }

    fn leave_values(&mut self, replaced: &mut Vec<Replaced>) {
        P::Versions::leave_values(&mut self.0, replaced);
    }

    fn leave_behind(
        &mut self,
        epochs: &Epochs,
        backlog: &mut ErasedBacklog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        P::Versions::leave_behind(&mut self.0, epochs, backlog.of::<P>(), queued)
    }
}

impl<P: Protocol> AnyBacklog for BacklogOf<P> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_due(&self, horizon: Epoch) -> bool {
        self.0.is_due(horizon)
    }

    fn has_to_collect(&self, horizon: Epoch) -> bool {
        P::Versions::has_to_collect(&self.0, horizon)
    }

    fn take_over(&mut self, left: Box<dyn AnyBacklog>) -> usize {
        let left: Box<dyn Any> = left;
        let left = left.downcast::<BacklogOf<P>>().expect("a database runs one protocol");
        self.0.take_over(left.0)
    }

    fn park(&mut self, snapshot: Option<u64>, at: CellAt, queued: (Epoch, u64)) {
        self.0.park(snapshot, at, queued);
    }

    fn has_released(&self) -> bool {
        self.0.has_released()
    }

    fn take_released(&mut self, before: Epoch, most: usize, into: &mut Vec<Due>) {
        self.0.take_released(before, most, into);
    }
}

/// A database's part of protocol `P`.
struct BaseOf<P: Protocol>(P::Clock);

/// A session's part of protocol `P`.
struct RunningOf<P: Protocol>(P::Attempt);

impl<P: Protocol> Debug for BaseOf<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the clock in `base` as the clock of `P`. The types match, since the database of `base`
/// has made the attempt.
fn clock_in<P: Protocol>(base: &dyn Base) -> &P::Clock {
    let base: &dyn Any = base;
    &base.downcast_ref::<BaseOf<P>>().expect("an attempt and its database are of one protocol").0
}

/// Returns the context for the inner protocol.
fn inner<'a, P: Protocol>(context: &'a mut Context<'_, Erased>) -> Context<'a, P> {
    Context {
        engine: context.engine,
        clock: clock_in::<P>(&**context.clock),
        local: context.local,
        versions: context.versions.of::<P>(),
    }
}

/// Expands to the argument of the inner protocol for a parameter of [`Base`] or [`Running`].
macro_rules! from_dyn {
    ($context:ident Context) => {
        &mut inner($context)
    };
    ($clock:ident Clock) => {
        clock_in::<P>($clock)
    };
    ($sink:ident Sink) => {
        &mut { $sink }
    };
    ($cells:ident Cells) => {
        $cells.iter().copied()
    };
    ($other:ident $type:tt) => {
        $other
    };
}

/// Calls the inner protocol in a function that needs no attempt.
macro_rules! call_by_base {
    (
        [$of:ty] $name:ident [$($before:ident: $b:tt),*] [clock: Clock]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        fn $name(&self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)? {
            <$of>::$name($(from_dyn!($before $b),)* &self.0, $(from_dyn!($after $a)),*)
        }
    };
    (
        [$of:ty] $name:ident [$($before:ident: $b:tt),*] []
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        fn $name(&self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)? {
            <$of>::$name($(from_dyn!($before $b),)* $(from_dyn!($after $a)),*)
        }
    };
    ($($of_an_attempt:tt)*) => {};
}

/// Calls the inner protocol in a function that works on an attempt.
macro_rules! call_by_running {
    // Some protocols lack these functions.
    ($of:tt chain_length $($shape:tt)*) => {};
    ($of:tt read_at_mark $($shape:tt)*) => {};
    (
        [$of:ty] $name:ident [$($before:ident: $b:tt),*] [attempt: AttemptMut]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        fn $name(&mut self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)? {
            <$of>::$name($(from_dyn!($before $b),)* &mut self.0, $(from_dyn!($after $a)),*)
        }
    };
    (
        [$of:ty] $name:ident [$($before:ident: $b:tt),*] [attempt: Attempt]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        fn $name(&self, $($before: dyn_type!($b),)* $($after: dyn_type!($a)),*) $(-> $result)? {
            <$of>::$name($(from_dyn!($before $b),)* &self.0, $(from_dyn!($after $a)),*)
        }
    };
    ($($of_a_database:tt)*) => {};
}

impl<P: Protocol> Base for BaseOf<P> {
    fn table_locks(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        P::table_locks(&self.0)
    }

    fn attempt(&self, counts: &Arc<LockCounters>) -> Box<dyn Running> {
        Box::new(RunningOf::<P>(P::attempt(&self.0, counts)))
    }

    fn collect(
        &self,
        context: &mut Context<'_, Erased>,
        backlog: &mut ErasedBacklog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    ) {
        let backlog = backlog.of::<P>();
        P::Versions::collect(&mut inner(context), backlog, tables, horizon, budget);
    }

    for_each_function!(all: call_by_base);
}

impl<P: Protocol> Running for RunningOf<P> {
    fn chain_length(&self, base: &dyn Base, at: CellAt) -> Option<usize> {
        match P::Versions::WORDS {
            0 => P::is_present(&self.0, at).then_some(1),
            _ => P::Versions::chain_length(clock_in::<P>(base), &self.0, at),
        }
    }

    fn read_at_mark(
        &mut self,
        context: &mut Context<'_, Erased>,
        at: CellAt,
        mark: usize,
        copy: &mut dyn FnMut(Words<'_>),
    ) -> Result<Seen, Abort> {
        match P::InPlace::APPLIES_AT_ONCE {
            true => P::InPlace::read_at_mark(&mut inner(context), &mut self.0, at, mark, copy),
            false => P::read(&mut inner(context), &mut self.0, at, copy),
        }
    }

    for_each_function!(all: call_by_running);
}

/// Expands to the argument in the table of functions for a parameter of a protocol.
macro_rules! to_dyn {
    ($clock:ident Clock) => {
        &**$clock
    };
    ($copy:ident Copy) => {
        &mut { $copy }
    };
    ($cells:ident Cells) => {
        &$cells.collect::<Vec<_>>()
    };
    ($other:ident $type:tt) => {
        $other
    };
}

/// Calls a function through the table of functions.
macro_rules! call_through_table {
    (
        $of:tt $name:ident [$($before:ident: $b:tt),*] [$part:ident: $p:tt]
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        fn $name(
            $($before: type_of!($b),)* $part: type_of!($p), $($after: type_of!($a)),*
        ) $(-> $result)? {
            $part.$name($(to_dyn!($before $b),)* $(to_dyn!($after $a)),*)
        }
    };
    (
        $of:tt $name:ident [$context:ident: Context] []
        [$($after:ident: $a:tt),*] $(-> $result:ty)?
    ) => {
        fn $name($context: type_of!(Context), $($after: type_of!($a)),*) $(-> $result)? {
            $context.clock.$name($context, $(to_dyn!($after $a)),*)
        }
    };
}

impl Parts for Erased {
    type Policy = Chosen;
    type Clock = Box<dyn Base>;
    type Attempt = Box<dyn Running>;
    type SessionVersions = ErasedSession;
    type Backlog = ErasedBacklog;
}

impl Protocol for Erased {
    const NAME: &'static str = "erased";
    const STRICT: bool = false;
    const OPAQUE: bool = false;
    const ASSUMES_BLINDLY: bool = true;
    const CELL_WORDS: usize = 0;
    const NODE_WORDS: usize = 0;
    type Versions = Self;
    type InPlace = Self;

    fn properties(policy: &Chosen) -> Properties {
        policy.properties
    }

    fn clock(policy: &Chosen, timestamps: Timestamps, epochs: &Arc<Epochs>) -> Self::Clock {
        (policy.make)(timestamps, epochs)
    }

    fn table_locks(clock: &Self::Clock) -> Option<Arc<dyn Any + Send + Sync>> {
        clock.table_locks()
    }

    fn attempt(clock: &Self::Clock, counts: &Arc<LockCounters>) -> Self::Attempt {
        clock.attempt(counts)
    }

    for_each_function!(Protocol: call_through_table);
}

#[warn(clippy::missing_trait_methods)]
impl Absence for Erased {
    for_each_function!(Absence: call_through_table);
}

#[warn(clippy::missing_trait_methods)]
impl InPlace<Erased> for Erased {
    // True because some protocols apply writes at once.
    const APPLIES_AT_ONCE: bool = true;

    for_each_function!(InPlace: call_through_table);
}

#[warn(clippy::missing_trait_methods)]
impl Versions<Erased> for Erased {
    // Set because some protocols keep versions and move records to the index of deleted records.
    const WORDS: usize = 1;
    const KEEPS_DELETED_INDEX: bool = true;

    for_each_function!(Versions: call_through_table);

    fn leaves_some(session: &ErasedSession) -> bool {
        session.0.as_ref().is_some_and(|session| session.leaves_some())
    }

    fn leave_values(session: &mut ErasedSession, replaced: &mut Vec<Replaced>) {
        let session = session.0.as_mut().expect("a session that has committed has its part");
        session.leave_values(replaced);
    }

    fn leave_behind(
        session: &mut ErasedSession,
        epochs: &Epochs,
        backlog: &mut ErasedBacklog,
        queued: &mut dyn FnMut() -> (Epoch, u64),
    ) -> usize {
        session.0.as_mut().map_or(0, |session| session.leave_behind(epochs, backlog, queued))
    }

    fn has_to_collect(backlog: &ErasedBacklog, horizon: Epoch) -> bool {
        backlog.0.as_ref().is_some_and(|backlog| backlog.has_to_collect(horizon))
    }

    fn collect(
        context: &mut Context<'_, Erased>,
        backlog: &mut ErasedBacklog,
        tables: &[Arc<TableCore>],
        horizon: Epoch,
        budget: usize,
    ) {
        context.clock.collect(context, backlog, tables, horizon, budget);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use in_tests::choosing;

/// Support for repeating other tests with every function called through the table.
#[cfg(test)]
mod in_tests {
    use super::Chosen;
    use std::cell::RefCell;

    thread_local! {
        static CHOSEN: RefCell<Option<Chosen>> = const { RefCell::new(None) };
    }

    pub(super) fn chosen() -> Option<Chosen> {
        CHOSEN.with_borrow(Clone::clone)
    }

    /// Runs `body`. Databases of [`Erased`](super::Erased) that `body` builds on this thread run
    /// the protocol `chosen`, unless `body` sets another policy.
    pub(crate) fn choosing<T>(chosen: Chosen, body: impl FnOnce() -> T) -> T {
        CHOSEN.set(Some(chosen));
        let result = body();
        CHOSEN.set(None);
        result
    }
}
