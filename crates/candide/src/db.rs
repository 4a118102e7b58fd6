//! Databases: tables by name, sessions, and the options they were built with.

#![forbid(unsafe_code)]

use crate::epoch::{Collect, Epoch, Epochs, Slot};
use crate::error::{Abort, Error};
use crate::factor::{Factor, Factors};
use crate::index::{Attic, HashIndex, OrderedIndex, Size, TableIndex};
use crate::memory::{Memory, Slab, SlabId};
use crate::protocol::recorded::{Batch, Recorded};
use crate::protocol::{
    Common, DefaultProtocol, Engine, Hot, INDEXES_MAX, IndexCore, IndexPlan, Indexes, Local, LookBack, Occ, Options,
    Properties, Protocol, Stage, TableCore, Token,
};
use crate::record::{
    Buffer, Group, IndexKind, KEY_WORDS_MAX, Key, KeyPacking, Layout, RECORD_WORDS_MAX, Record, Show, image_words,
};
use crate::session::{Session, run_cached};
use crate::stats::{Counters, Stats, Tally};
use crate::sync::{
    AtomicBool, AtomicU64, MODELLED, Mutex, MutexGuard, Ordering, Random, lock, process_unique, try_lock,
};
use crate::table::Table;
use crate::timestamps::{self, Timestamps};
use crate::txn::{Core, Garbage, Public, RunOptions, Tx};
use std::any::TypeId;
use std::sync::{Arc, PoisonError, RwLock};

/// An in-memory database whose transactions are serializable by protocol `P`.
///
/// A handle: clones are the same database. It lives as long as any handle, table or session of it.
///
/// ```
/// use candide::{Abort, Database, Exclusion, Serial};
///
/// let db = Database::new(); // optimistic concurrency control, every default
/// let other = Database::<Serial>::builder().policy(Exclusion::GlobalLock).memory_limit(64 << 20).build()?;
/// assert_eq!(db.run(|tx| Ok::<_, Abort>(tx.attempt()))?, 1);
/// # drop(other);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Database<P: Protocol = DefaultProtocol> {
    pub(crate) inner: Arc<Inner<P>>,
}

impl<P: Protocol> Clone for Database<P> {
    fn clone(&self) -> Self {
        Database { inner: self.inner.clone() }
    }
}

/// The database behind its handles.
#[derive(Debug)]
pub(crate) struct Inner<P: Protocol> {
    pub(crate) engine: Engine<P>,
    /// Row types of the tables, by number.
    types: Mutex<Vec<TypeId>>,
    /// Sessions that exist, and those that are gone but left garbage.
    sessions: Mutex<Vec<Member>>,
    sessions_made: AtomicU64,
    /// Set while the one session of a protocol that allows only one exists.
    session_taken: AtomicBool,
    /// Counts of sessions that are gone.
    past: Mutex<Stats>,
    slabs_made: AtomicU64,
    lines: Arc<Slab>,
    collector: Mutex<Collector>,
    /// What the advancer has taken of entries that are for all, and made of them.
    common_garbage: Mutex<Garbage>,
    /// Held by who adds or drops a secondary index.
    pub(crate) index_changes: Mutex<()>,
    seed: u64,
}

#[derive(Debug)]
struct Member {
    public: Arc<Public>,
    gone: bool,
}

/// What the advancer collects with.
#[derive(Debug)]
pub(crate) struct Collector {
    slot: Arc<Slot>,
    local: Local,
}

/// While it lives, the advancer collects no garbage of the database.
pub(crate) type CollectorGuard<'a> = MutexGuard<'a, Collector>;

impl Database<Occ> {
    /// A database with every default: optimistic concurrency control, splitting and commit-time updates on, no memory
    /// limit.
    #[expect(clippy::new_without_default, reason = "`Database::default()` would need the protocol spelled out")]
    pub fn new() -> Database<Occ> {
        Database::<Occ>::builder().build().expect("the defaults are valid")
    }
}

impl<P: Protocol> Database<P> {
    /// Begins building a database.
    pub fn builder() -> Builder<P> {
        Builder {
            options: Options {
                splitting: true,
                commit_time_updates: true,
                factors: Factors::default(),
                memory_limit_bytes: usize::MAX,
                timestamps: None,
            },
            policy: P::Policy::default(),
            seed: None,
            first_epoch: None,
        }
    }

    /// The table of this name, created empty if there is none.
    ///
    /// # Errors
    /// [`Error::TableType`] if the name belongs to a table of another row type, [`Error::RowType`] if `R` cannot be
    /// stored, [`Error::EmptyTableName`], [`Error::TooManyTables`], [`Error::MemoryLimit`].
    pub fn table<R: Record>(&self, name: &str) -> Result<Table<R, P>, Error> {
        self.table_with(name, TableOptions::default())
    }

    /// As [`Database::table`], with options for the case that the table is created.
    ///
    /// # Errors
    /// As [`Database::table`].
    pub fn table_with<R: Record>(&self, name: &str, options: TableOptions) -> Result<Table<R, P>, Error> {
        let inner = &self.inner;
        let mut types = lock(&inner.types);
        let mut tables = inner.engine.tables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(core) = tables.iter().find(|core| *core.name == *name && !core.is_index) {
            if types[usize::from(core.number)] != TypeId::of::<R>() {
                let (table, existing) = (name.to_owned(), core.row_type);
                return Err(Error::TableType { table, wanted: R::NAME, existing });
            }
            return Ok(Table::new(inner.clone(), core.clone()));
        }
        let cores = inner.new_table::<R>(name, options, &tables)?;
        let core = cores[0].clone();
        types.resize(tables.len() + cores.len(), TypeId::of::<R>());
        tables.extend(cores);
        Ok(Table::new(inner.clone(), core))
    }

    /// A session: what a thread runs its transactions with.
    ///
    /// # Errors
    /// [`Error::SecondSession`] if the protocol allows one session and it exists.
    pub fn session(&self) -> Result<Session<P>, Error> {
        Session::new(&self.inner)
    }

    /// Runs a transaction with a session that this thread keeps for the database. See [`Session::run`]; the difference
    /// is a look-up in a thread-local list, and that the session's statistics are only part of the database's. An empty
    /// transaction takes about 240 instructions this way and 130 by a session of one's own, under `Occ`.
    ///
    /// # Errors
    /// As [`Session::run`], and [`Abort::Nested`] if this thread is inside `run` of the same database already (or the
    /// protocol allows one session and another one exists).
    pub fn run<T, E: From<Abort>>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, E>) -> Result<T, E> {
        run_cached(&self.inner, const { &RunOptions::new() }, LookBack::No, body)
    }

    /// As [`Database::run`], with limits on retrying, told of conflicts, or only reading.
    ///
    /// # Errors
    /// As [`Database::run`], and [`Abort::AttemptsExhausted`] or [`Abort::DeadlinePassed`].
    pub fn run_with<T, E: From<Abort>>(
        &self,
        options: RunOptions<'_>,
        body: impl FnMut(&Tx<'_, P>) -> Result<T, E>,
    ) -> Result<T, E> {
        run_cached(&self.inner, &options, options.look_back(), body)
    }

    /// Runs a transaction that [only reads](RunOptions::read_only).
    ///
    /// # Errors
    /// As [`Database::run`], and [`Abort::ReadOnly`] from each operation that would write or lock.
    pub fn run_read_only<T, E: From<Abort>>(&self, body: impl FnMut(&Tx<'_, P>) -> Result<T, E>) -> Result<T, E> {
        self.run_with(RunOptions::new().read_only(), body)
    }

    /// Counts of all sessions, past and present.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// What the database's memory is used for.
    pub fn memory(&self) -> MemoryUse {
        let inner = &self.inner;
        let of_sessions: usize = lock(&inner.sessions).iter().map(|member| lock(&member.public.garbage).len()).sum();
        MemoryUse {
            reserved_bytes: inner.engine.memory.reserved_bytes(),
            garbage: of_sessions + inner.common_garbage(),
        }
    }

    /// Returns the properties of the database's protocol, by the policy that it was built with.
    pub fn properties(&self) -> Properties {
        self.inner.engine.properties
    }

    /// Whether each column group has a timestamp of its own.
    pub fn splitting(&self) -> bool {
        self.inner.engine.options.splitting
    }

    /// Whether updates are blind.
    pub fn commit_time_updates(&self) -> bool {
        self.inner.engine.options.commit_time_updates
    }
}

impl<P: Protocol> Database<Recorded<P>> {
    /// The attempts that have ended since the last call, and what has been forgotten. Whoever records for long has to call it
    /// now and then: until then all of it is kept.
    pub fn take_history(&self) -> Batch {
        self.inner.engine.clock.take()
    }
}

/// What a database's memory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes that tables and indexes have taken, as the memory limit counts them.
    pub reserved_bytes: usize,
    /// Deleted records and unlinked blocks that are waiting for the last transaction that could see them.
    pub garbage: usize,
}

/// Options of a table that is created.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableOptions {
    capacity: usize,
    components_share_words: bool,
    ordered: bool,
}

impl TableOptions {
    /// Builds the index for about `rows` rows, so that it need not grow while they are inserted.
    #[must_use]
    pub fn capacity(self, rows: usize) -> TableOptions {
        TableOptions { capacity: rows, ..self }
    }

    /// Keeps the keys in order though the row type does not ask for it; a basis factor for experiments.
    #[must_use]
    pub fn ordered(self) -> TableOptions {
        TableOptions { ordered: true, ..self }
    }

    /// Whether each component of a composite key begins a word, and so a layer of an ordered index, of its own (default):
    /// then keys that begin alike, where there are two or more, have leaves of their own, and a scan of them does not conflict
    /// with inserts of keys that begin otherwise. Off, components are packed into fewer words; a basis factor for experiments. Secondary
    /// indexes keep the components of their own keys apart either way.
    #[must_use]
    pub fn contention_aware_keys(self, on: bool) -> TableOptions {
        TableOptions { components_share_words: !on, ..self }
    }
}

/// Builds a [`Database`]. The switches are the basis factors that experiments vary; the defaults are the good choices.
#[derive(Debug)]
pub struct Builder<P: Protocol> {
    options: Options,
    policy: P::Policy,
    seed: Option<u64>,
    first_epoch: Option<Epoch>,
}

impl<P: Protocol> Clone for Builder<P> {
    fn clone(&self) -> Self {
        Builder { options: self.options, policy: self.policy.clone(), seed: self.seed, first_epoch: self.first_epoch }
    }
}

impl<P: Protocol> Builder<P> {
    /// Chooses a policy, of a protocol that leaves a choice: how [`Serial`](crate::Serial) keeps transactions apart
    /// ([`Exclusion`](crate::Exclusion)), and which protocol [`Erased`](crate::Erased) runs ([`Chosen`](crate::Chosen)).
    #[must_use]
    pub fn policy(mut self, policy: P::Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Timestamp splitting: whether each column group is a unit of conflict by itself (default), or the whole row is one.
    #[must_use]
    pub fn timestamp_splitting(mut self, on: bool) -> Self {
        self.options.splitting = on;
        self
    }

    /// Commit-time updates: whether updates are blind (default), or observe what they update like a read and a write.
    #[must_use]
    pub fn commit_time_updates(mut self, on: bool) -> Self {
        self.options.commit_time_updates = on;
        self
    }

    /// Where timestamps come from, under a protocol that draws them and leaves the choice
    /// ([`Protocol::TIMESTAMPS`](crate::Protocol::TIMESTAMPS)): today [`Mvto`](crate::Mvto). By default the first that it knows.
    #[must_use]
    pub fn timestamps(mut self, timestamps: Timestamps) -> Self {
        self.options.timestamps = Some(timestamps);
        self
    }

    /// Makes some of the bad choices that there are, besides those already made; for experiments.
    #[must_use]
    pub fn factors(mut self, factors: impl IntoIterator<Item = Factor>) -> Self {
        self.options.factors = factors.into_iter().fold(self.options.factors, Factors::with);
        self
    }

    /// The most bytes that tables and indexes may take. An insert that would exceed it fails with
    /// [`Abort::MemoryLimit`]; so does an update, where it makes a version. Memory is taken in steps of 64 KiB and 2 MiB. What has been
    /// begun is ended past the limit: a bucket that is half moved takes some lines more, and a delete its version.
    #[must_use]
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.options.memory_limit_bytes = bytes;
        self
    }

    /// Fixes the hash functions of the tables, for repeatable experiments. By default they differ from process to
    /// process, so that nobody can prepare keys that collide.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Epochs of its own that begin at `first` and move only by hand: for tests that own time.
    #[cfg(test)]
    pub(crate) fn manual_epochs(mut self, first: Epoch) -> Self {
        self.first_epoch = Some(first);
        self
    }

    /// The database.
    ///
    /// # Errors
    /// [`Error::Timestamps`] if the protocol draws none from where it is to. Limits that cannot work are found when tables are created.
    pub fn build(self) -> Result<Database<P>, Error> {
        let properties = P::properties(&self.policy);
        if let Some(wanted) = self.options.timestamps.filter(|wanted| !properties.timestamps.contains(wanted)) {
            return Err(Error::Timestamps { protocol: properties.name, wanted });
        }
        let timestamps = self.options.timestamps.unwrap_or_else(|| timestamps::first_of(properties.timestamps));
        let id = process_unique();
        let epochs = match self.first_epoch {
            Some(first) => Epochs::manual(first),
            None if MODELLED => Epochs::manual(1),
            None => Epochs::of_process(),
        };
        // A sanitizer watches over what the system has allocated, and knows nothing of blocks within that.
        let system = cfg!(sanitized) || self.options.factors.has(Factor::SystemAllocator);
        let memory = Arc::new(Memory::new(self.options.memory_limit_bytes).by_system(system));
        let lines = Slab::new(SlabId(0), HashIndex::LINE_WORDS, &memory);
        let slot = epochs.register();
        let collector = Collector { local: Local::new(id, COLLECTOR, slot.clone()), slot };
        let inner = Arc::new(Inner {
            engine: Engine {
                common: Common {
                    id,
                    options: self.options,
                    properties,
                    epochs: epochs.clone(),
                    memory,
                    tables: RwLock::new(Vec::new()).into(),
                    token: Token::new(),
                    hot: Hot::default(),
                },
                clock: P::clock(&self.policy, timestamps),
            },
            types: Mutex::new(Vec::new()),
            sessions: Mutex::new(Vec::new()),
            sessions_made: AtomicU64::new(COLLECTOR),
            session_taken: AtomicBool::new(false),
            past: Mutex::new(Stats::default()),
            slabs_made: AtomicU64::new(1),
            lines,
            collector: Mutex::new(collector),
            common_garbage: Mutex::default(),
            index_changes: Mutex::new(()),
            seed: self.seed.unwrap_or_else(Random::process_seed),
        });
        let weak: std::sync::Weak<Inner<P>> = Arc::downgrade(&inner);
        epochs.add_collector(weak);
        Ok(Database { inner })
    }
}

/// What a table is to be.
struct Plan {
    name: Box<str>,
    number: usize,
    row_type: &'static str,
    /// Whether it holds the entries of a secondary index.
    is_index: bool,
    groups: &'static [Group],
    split: bool,
    packing: Option<KeyPacking>,
    /// Words of the keys it keeps, and those of them that a hash index hashes.
    key_words: usize,
    hashed_words: usize,
    show_key: Show,
    ordered: bool,
    capacity: usize,
}

/// The groups of entries, by the number of their words.
static ENTRY_GROUPS: [Group; KEY_WORDS_MAX + 1] = {
    let mut groups = [Group::new("entry", 0); KEY_WORDS_MAX + 1];
    let mut words = 0;
    while words < groups.len() {
        groups[words].words = words;
        words += 1;
    }
    groups
};

/// The collector's number among the sessions.
const COLLECTOR: u64 = 1;

impl<P: Protocol> Inner<P> {
    /// A table and its indexes, with the numbers that follow those of the tables there are; the table comes first.
    fn new_table<R: Record>(
        &self,
        name: &str,
        options: TableOptions,
        tables: &[Arc<TableCore>],
    ) -> Result<Vec<Arc<TableCore>>, Error> {
        if name.is_empty() {
            return Err(Error::EmptyTableName);
        }
        check_row_type::<R>()?;
        let contended = options.components_share_words || self.engine.options.factors.has(Factor::ContendedKeys);
        let packing = if contended { KeyPacking::new(R::Key::WIDTHS) } else { None };
        let key_words = packing.map_or(R::Key::WORDS, |packing| packing.words());
        // Before anything is reserved, which would not be given back.
        R::INDEXES.iter().try_for_each(|spec| check_index(R::NAME, &IndexPlan::of_spec(spec), key_words))?;
        let table = Arc::new(self.new_core(Plan {
            name: name.into(),
            number: tables.len(),
            row_type: R::NAME,
            is_index: false,
            groups: R::GROUPS,
            split: self.engine.options.splitting && self.engine.properties.cell_words > 0,
            packing,
            key_words,
            hashed_words: key_words,
            show_key: R::Key::show,
            ordered: R::Index::ORDERED || options.ordered || self.engine.options.factors.has(Factor::OrderedOnly),
            capacity: options.capacity,
        })?);
        let mut cores = vec![table.clone()];
        for (number, spec) in R::INDEXES.iter().enumerate() {
            let index = IndexPlan::of_spec(spec);
            let entries = self.new_entries(&table, &index, tables.len() + cores.len(), options.capacity)?;
            cores.push(entries.clone());
            let index = table.indexes.add(index.with_entries(number, entries));
            for stage in [Stage::Kept, Stage::Enforced, Stage::Readable] {
                table.indexes.set(index, stage, true);
            }
        }
        Ok(cores)
    }

    /// The table of an index's entries.
    fn new_entries(
        &self,
        table: &TableCore,
        index: &IndexPlan,
        number: usize,
        capacity: usize,
    ) -> Result<Arc<TableCore>, Error> {
        let primary_words = table.layout.key_words();
        check_index(table.row_type, index, primary_words)?;
        let (key_words, words) = index.entry_words(primary_words);
        let entries = self.new_core(Plan {
            name: format!("{}.{}", table.name, index.name).into(),
            number,
            row_type: table.row_type,
            is_index: true,
            groups: &ENTRY_GROUPS[words..=words],
            split: false,
            packing: None,
            key_words,
            hashed_words: index.key_words,
            show_key: index.show_key,
            ordered: index.ordered || self.engine.options.factors.has(Factor::OrderedOnly),
            capacity,
        })?;
        Ok(Arc::new(entries))
    }

    /// Adds an index to a table, at no stage yet. The caller keeps others from doing so.
    pub(crate) fn add_index<'t>(&self, table: &'t TableCore, plan: IndexPlan) -> Result<&'t IndexCore, Error> {
        if table.indexes.kept().any(|index| index.name == plan.name) {
            return Err(Error::IndexExists { table: table.name.to_string(), index: plan.name.to_string() });
        }
        if plan.name.is_empty() {
            return Err(Error::EmptyTableName);
        }
        if let Some(dropped) = table.indexes.dropped_like(&plan) {
            return Ok(dropped);
        }
        let number = table.indexes.next_number().ok_or(Error::TooManyIndexes)?;
        let mut types = lock(&self.types);
        let mut tables = self.engine.tables.write().unwrap_or_else(PoisonError::into_inner);
        let entries = self.new_entries(table, &plan, tables.len(), 0)?;
        tables.push(entries.clone());
        types.push(TypeId::of::<IndexCore>());
        Ok(table.indexes.add(plan.with_entries(number, entries)))
    }

    pub(crate) fn memory_limit_error(&self) -> Error {
        Error::MemoryLimit { limit_bytes: self.engine.options.memory_limit_bytes }
    }

    fn new_core(&self, plan: Plan) -> Result<TableCore, Error> {
        let Plan { name, row_type, is_index, groups, split, key_words, .. } = plan;
        let properties = &self.engine.properties;
        let number = u16::try_from(plan.number).map_err(|_| Error::TooManyTables)?;
        let layout =
            Layout::new(number, key_words, plan.packing, groups, split, properties.cell_words).map_err(|words| {
                let problem = format!("its records would have {words} words; 65,535 is the most");
                Error::RowType { row: row_type, problem }
            })?;
        let slab = SlabId(self.slabs_made.fetch_add(1, Ordering::Relaxed) as u32);
        let memory = &self.engine.memory;
        let records = Slab::new(slab, layout.total_words(), memory);
        let version_slab = |words: usize| {
            let slab = SlabId(self.slabs_made.fetch_add(1, Ordering::Relaxed) as u32);
            Slab::new(slab, words, memory)
        };
        let versions = (properties.version_words > 0).then(|| {
            let largest = groups.iter().map(|group| group.words).max().unwrap_or(0);
            let payload = if split { largest } else { image_words(groups) };
            version_slab(properties.version_words + payload + properties.spare_words)
        });
        let short_versions = versions.as_ref().filter(|_| properties.short_version_words > 0).map(|versions| {
            let are_short = versions.block_words() <= properties.short_version_words;
            if are_short { versions.clone() } else { version_slab(properties.short_version_words) }
        });
        let index = if plan.ordered {
            let slab = SlabId(self.slabs_made.fetch_add(1, Ordering::Relaxed) as u32);
            let nodes = Slab::new(slab, OrderedIndex::NODE_WORDS, memory);
            OrderedIndex::new(nodes, key_words, properties.node_words).map(TableIndex::Ordered)
        } else {
            let words = (key_words, plan.hashed_words);
            let size = Size { capacity: plan.capacity, grows: !self.engine.options.factors.has(Factor::FixedHash) };
            HashIndex::new(memory, &self.lines, words, properties.node_words, size, self.seed).map(TableIndex::Hash)
        };
        let index = index.map_err(|_| self.memory_limit_error())?;
        let attic = match &index {
            TableIndex::Ordered(index) if properties.stows => {
                Some(Attic::beside(index).map_err(|_| self.memory_limit_error())?)
            }
            _ => None,
        };
        Ok(TableCore {
            database: self.engine.id,
            number,
            name,
            row_type,
            is_index,
            groups,
            layout,
            show_key: plan.show_key,
            index,
            attic,
            records,
            indexes: Indexes::default(),
            linked: Tally::default(),
            versions,
            short_versions,
        })
    }

    /// Admits a session, if the protocol allows another one.
    pub(crate) fn admit(&self) -> Result<(), Error> {
        // Acquire: what the one session before did is this one's to see (E12).
        if self.engine.properties.one_session && self.session_taken.swap(true, Ordering::Acquire) {
            return Err(Error::SecondSession { protocol: self.engine.properties.name });
        }
        Ok(())
    }

    /// Takes an admission back.
    pub(crate) fn dismiss(&self) {
        self.session_taken.store(false, Ordering::Release); // E12
    }

    /// A new session's working parts.
    pub(crate) fn join(&self) -> Core<P> {
        let id = self.sessions_made.fetch_add(1, Ordering::Relaxed) + 1;
        let public = Arc::new(Public {
            session: id,
            slot: self.engine.epochs.register(),
            garbage: Mutex::new(Garbage::default()),
            counters: Counters::new(),
        });
        lock(&self.sessions).push(Member { public: public.clone(), gone: false });
        Core::new(&self.engine, id, public)
    }

    /// Forgets a session, keeping its counts and its garbage.
    pub(crate) fn leave(&self, core: &mut Core<P>) {
        let state = core.state.get_mut();
        lock(&core.public.garbage).take_from(&self.engine, &mut state.local);
        state.local.leave_tallies(&self.engine.tables.read().unwrap_or_else(PoisonError::into_inner));
        self.engine.token.release(state.local.id);
        self.engine.epochs.unregister(&core.public.slot);
        let mut sessions = lock(&self.sessions);
        // Under the lock of the sessions, so that nobody finds these counts in both places, or in none.
        lock(&self.past).add(&core.public.counters.read());
        if let Some(member) = sessions.iter_mut().find(|member| Arc::ptr_eq(&member.public, &core.public)) {
            member.gone = true;
        }
        sessions.retain(|member| !member.gone || !lock(&member.public.garbage).is_empty());
    }

    /// Calls `each` with what can be seen of every session, and whether it is gone and has only left garbage.
    pub(crate) fn for_each_session(&self, mut each: impl FnMut(&Public, bool)) {
        lock(&self.sessions).iter().for_each(|member| each(&member.public, member.gone));
    }

    /// How much garbage is nobody's own.
    pub(crate) fn common_garbage(&self) -> usize {
        lock(&self.common_garbage).len() + self.engine.hot.len()
    }

    /// Keeps the advancer from collecting, unless it is, or is kept from it already.
    pub(crate) fn try_stop_collector(&self) -> Option<CollectorGuard<'_>> {
        try_lock(&self.collector)
    }

    /// Counts of all sessions, past and present.
    pub(crate) fn stats(&self) -> Stats {
        let sessions = lock(&self.sessions);
        let mut sum = *lock(&self.past);
        for member in sessions.iter().filter(|member| !member.gone) {
            sum.add(&member.public.counters.read());
        }
        sum
    }

    /// Whether no session is in a transaction.
    pub(crate) fn is_quiescent(&self) -> bool {
        !lock(&self.sessions).iter().any(|member| member.public.slot.is_pinned())
    }
}

impl<P: Protocol> Collect for Inner<P> {
    fn collect(&self, idle_before: Epoch) -> bool {
        // Raw iteration may be going on; later is early enough.
        let Some(mut collector) = try_lock(&self.collector) else { return true };
        let Collector { slot, local } = &mut *collector;
        let Some(mut sessions) = try_lock(&self.sessions) else { return true };
        let mut left = false;
        for member in sessions.iter() {
            // Who is just collecting may take long, and epochs would not pass meanwhile.
            let Some(mut garbage) = try_lock(&member.public.garbage) else {
                left = true;
                continue;
            };
            if !garbage.is_empty() && (member.gone || member.public.slot.leaves_garbage_since(idle_before)) {
                self.engine.epochs.pin(slot);
                garbage.collect(&self.engine, local, slot, 0);
                self.engine.epochs.unpin(slot);
            }
            left |= !garbage.is_empty();
        }
        sessions.retain(|member| !member.gone || !lock(&member.public.garbage).is_empty());
        let mut common = lock(&self.common_garbage);
        if !common.is_empty() || !self.engine.hot.is_empty() {
            self.engine.epochs.pin(slot);
            // What has not waited for long is for those who run transactions; passes are more urgent.
            common.collect(&self.engine, local, slot, idle_before);
            self.engine.epochs.unpin(slot);
        }
        left |= !common.is_empty() || !self.engine.hot.is_empty();
        // What was freed goes to the slabs, where sessions find it.
        local.caches.clear();
        left
    }
}

impl<P: Protocol> Drop for Inner<P> {
    fn drop(&mut self) {
        self.engine.epochs.unregister(&lock(&self.collector).slot);
        // Threads may keep sessions of a database that is gone.
        for member in lock(&self.sessions).drain(..) {
            self.engine.epochs.unregister(&member.public.slot);
            *lock(&member.public.garbage) = Garbage::default();
        }
    }
}

/// Checks that an index of a row type whose tables have keys of so many words can be made.
fn check_index(row: &'static str, index: &IndexPlan, primary_words: usize) -> Result<(), Error> {
    if index.fits(primary_words) {
        return Ok(());
    }
    let (name, own, all) = (&index.name, index.key_words, index.entry_words(primary_words).0);
    let problem = format!(
        "the entries of its index {name:?} would have a key of {all} words, {own} of them the index's own; 1 is the least of these, \
         {KEY_WORDS_MAX} the most of all"
    );
    Err(Error::RowType { row, problem })
}

/// Checks what a `Record` implementation says about itself.
fn check_row_type<R: Record>() -> Result<(), Error> {
    let problem = |problem: String| Err(Error::RowType { row: R::NAME, problem });
    let groups = R::GROUPS;
    if groups.is_empty() || groups.len() > Group::COUNT_MAX {
        return problem(format!("it has {} groups; 1 to {} are possible", groups.len(), Group::COUNT_MAX));
    }
    if let Some(group) = groups.iter().find(|group| !(1..=RECORD_WORDS_MAX).contains(&group.words)) {
        let (name, words) = (group.name, group.words);
        return problem(format!("group {name:?} has {words} words; 1 to {RECORD_WORDS_MAX} are possible"));
    }
    if !(1..=KEY_WORDS_MAX).contains(&<R::Key as Key>::WORDS) {
        let words = <R::Key as Key>::WORDS;
        return problem(format!("its key has {words} words; 1 to {KEY_WORDS_MAX} are possible"));
    }
    if R::INDEXES.len() > INDEXES_MAX {
        return problem(format!("it has {} indexes; {INDEXES_MAX} are possible", R::INDEXES.len()));
    }
    let mut image = R::Image::ZERO;
    let image = image.words().len();
    if image != image_words(groups) {
        let words = image_words(groups);
        return problem(format!("its image has {image} words but its groups have {words}; use [u64; {words}]"));
    }
    Ok(())
}
