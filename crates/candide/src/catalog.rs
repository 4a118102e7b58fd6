//! The creation of tables, independent of their row types.

#![forbid(unsafe_code)]

mod options;
mod sequences;
mod stored;

pub use options::TableOptions;
#[cfg(all(test, not(any(loom, shuttle))))]
pub(crate) use sequences::{BLOCK, NAMES_READ, NUMBER_MAX};
pub(crate) use sequences::{SEQUENCES, SequenceCore, check_name};
pub(crate) use stored::files_error;

use crate::engine::{
    Common, INDEXES_MAX, IndexCore, IndexPlan, Indexes, ShowKey, Stage, TableCore, VersionTable,
};
use crate::error::Error;
use crate::factor::Factor;
use crate::index::{DeletedIndex, HashIndex, OrderedIndex, Size, TableIndex};
use crate::locks::{SharedLocks, cell_words, flags_of};
use crate::memory::{Memory, Slab, SlabId};
use crate::policy::Policy;
use crate::record::{Layout, RECORD_WORDS_MAX};
use crate::schema::{Group, KEY_WORDS_MAX, KeyPacking, RowType, Show, image_words};
use crate::stats::Tally;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use candide_log::Store;
use candide_log::schema::TableSchema;
use options::Made;
use sequences::{Sequences, is_reserved};
use std::any::TypeId;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, PoisonError};

/// The tables of a database by name, and the parts from which new tables are made.
#[derive(Debug)]
pub(crate) struct Catalog {
    tables: Mutex<Names>,
    pub(crate) sequences: Sequences,
    slabs_made: AtomicU64,
    /// The slab for the overflow lines of hash indexes.
    lines: Arc<Slab>,
    /// The locks by policy; `None` if the protocol has no policies of tables.
    locks: Option<Arc<SharedLocks>>,
    seed: u64,
}

/// The tables of a database by name, without the tables of index entries.
#[derive(Debug, Default)]
struct Names {
    known: HashMap<Box<str>, Known>,
    /// The number of the program's tables among them.
    of_program: usize,
}

impl Names {
    fn insert(&mut self, name: &str, known: Known) {
        self.of_program += usize::from(!is_reserved(name));
        self.known.insert(name.into(), known);
    }
}

/// An existing table: its number, its row type, and how it was made.
#[derive(Debug)]
struct Known {
    number: usize,
    row: KnownRow,
    made: Made,
}

/// The row type of an existing table.
#[derive(Debug)]
enum KnownRow {
    Typed {
        id: TypeId,
        path: &'static str,
    },
    /// The table was recovered, and the program has not named its row type yet.
    Recovered(Box<TableSchema>),
}

impl KnownRow {
    fn of(row: &RowType) -> KnownRow {
        KnownRow::Typed { id: row.id, path: row.path }
    }
}

/// A table that the catalog has found or made.
pub(crate) enum FoundTable {
    Ready(Arc<TableCore>),
    /// The table was recovered, and has the rows of this row type, but not its indexes yet.
    /// [`Catalog::adopt`] makes it ready.
    Recovered(Arc<TableCore>),
}

/// The properties of a table that is about to be made.
struct Plan {
    name: Box<str>,
    number: usize,
    row_type: &'static str,
    groups: &'static [Group],
    split: bool,
    packing: Option<KeyPacking>,
    /// The number of words in a key; and, in `hashed_words`, the number of those words that a hash
    /// index hashes.
    key_words: usize,
    hashed_words: usize,
    show_key: Show,
    ordered: bool,
    capacity: usize,
    policy: Policy,
    log_number: Option<u16>,
}

/// The column groups of index entries; the group at position `n` has `n` words.
static ENTRY_GROUPS: [Group; KEY_WORDS_MAX + 1] = {
    let mut groups = [Group::new("entry", 0); KEY_WORDS_MAX + 1];
    let mut words = 0;
    while words < groups.len() {
        groups[words].words = words;
        words += 1;
    }
    groups
};

impl Catalog {
    pub(crate) fn new(memory: &Arc<Memory>, seed: u64, locks: Option<Arc<SharedLocks>>) -> Catalog {
        let lines = Slab::new(SlabId(0), HashIndex::LINE_WORDS, memory);
        Catalog {
            tables: Mutex::default(),
            sequences: Sequences::default(),
            slabs_made: AtomicU64::new(1),
            lines,
            locks,
            seed,
        }
    }

    /// Returns the locks by policy; `None` if the protocol has no policies of tables.
    pub(crate) fn locks(&self) -> Option<&Arc<SharedLocks>> {
        self.locks.as_ref()
    }

    /// Returns the policy of a table.
    pub(crate) fn policy_of(&self, table: &TableCore) -> Policy {
        self.locks().map_or(Policy::Optimistic, |locks| locks.policies.of(table.number))
    }

    /// Returns the number of the program's tables.
    pub(crate) fn tables(&self) -> usize {
        lock(&self.tables).of_program
    }

    /// Returns the table called `name`. If there is no such table, makes it, also in the files of
    /// the database.
    pub(crate) fn table(
        &self,
        (common, store): (&Common, Option<&Store>),
        name: &str,
        options: TableOptions,
        row: &RowType,
    ) -> Result<FoundTable, Error> {
        let mut names = lock(&self.tables);
        let mut tables = common.tables.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.known.get(name) {
            let core = &tables[known.number];
            let found = existing(name, core, &known.row, row)?;
            // A policy by name takes precedence, so the number of tables does not matter.
            let policy_of = |wanted| self.policy_for(common, (name, 0), Some(wanted));
            let wanted_policy = options.policy.map(policy_of).transpose()?;
            options.check(common, (core, known.made), (wanted_policy, self.policy_of(core)))?;
            return Ok(found);
        }
        let mut cores = self.new_table(common, (name, names.of_program), options, row, &tables)?;
        if let Some(store) = store.filter(|_| !options.volatile) {
            let number = store_table(store, name, options, row)?;
            Arc::get_mut(&mut cores[0]).expect("nothing else has the table yet").log_number =
                Some(number);
        }
        #[cfg(test)]
        if store.is_none() && common.log.get().is_some() && !options.volatile {
            let core = Arc::get_mut(&mut cores[0]).expect("nothing else has the table yet");
            core.log_number = Some(core.number);
        }
        let core = cores[0].clone();
        let (row, made) = (KnownRow::of(row), options.made(common));
        names.insert(name, Known { number: tables.len(), row, made });
        tables.extend(cores);
        Ok(FoundTable::Ready(core))
    }

    /// Returns whether the program has named the row type of a table.
    pub(crate) fn is_adopted(&self, core: &TableCore) -> bool {
        let names = lock(&self.tables);
        names
            .known
            .get(&*core.name)
            .is_some_and(|known| matches!(known.row, KnownRow::Typed { .. }))
    }

    /// Notes the row type of a recovered table, whose indexes have been made.
    pub(crate) fn adopt(&self, core: &TableCore, row: &RowType) {
        core.show_key.set(row.show_key);
        if let Some(known) = lock(&self.tables).known.get_mut(&*core.name) {
            known.row = KnownRow::of(row);
        }
    }

    /// Makes a table that recovery has found in the files.
    pub(crate) fn recovered(
        &self,
        common: &Common,
        schema: &TableSchema,
    ) -> Result<Arc<TableCore>, Error> {
        let mut names = lock(&self.tables);
        let mut tables = common.tables.write().unwrap_or_else(PoisonError::into_inner);
        let groups = stored::groups(schema);
        let wanted = match &schema.policy {
            Some(name) if self.locks.is_some() => Policy::from_str(name).ok(),
            _ => None,
        };
        let core = Arc::new(self.new_core(
            common,
            Plan {
                name: schema.name.as_str().into(),
                number: tables.len(),
                row_type: stored::intern(&schema.row_type),
                groups,
                split: schema.splitting.unwrap_or(common.options.splitting)
                    && common.properties.cell_words > 0,
                policy: self.policy_for(common, (&schema.name, names.of_program), wanted)?,
                packing: None,
                key_words: schema.key_words.into(),
                hashed_words: schema.key_words.into(),
                show_key: stored::show_words,
                ordered: schema.ordered || common.options.factors.has(Factor::OrderedOnly),
                capacity: 0,
                log_number: Some(schema.number as u16),
            },
        )?);
        let row = KnownRow::Recovered(Box::new(schema.clone()));
        let known = Known { number: tables.len(), row, made: Made::RECOVERED };
        names.insert(&schema.name, known);
        tables.push(core.clone());
        Ok(core)
    }

    /// Makes a table and its indexes, and returns them with the table first. `place` is the number
    /// of the program's tables before it. The numbers of the new tables follow those of the
    /// existing tables.
    fn new_table(
        &self,
        common: &Common,
        (name, place): (&str, usize),
        options: TableOptions,
        row: &RowType,
        tables: &[Arc<TableCore>],
    ) -> Result<Vec<Arc<TableCore>>, Error> {
        if name.is_empty() {
            return Err(Error::EmptyTableName);
        }
        check_row_type(row)?;
        let capacity = options.made(common).capacity;
        let packing =
            if options.shares_words(common) { KeyPacking::new(row.key_widths) } else { None };
        let capacity = capacity.unwrap_or(0);
        let key_words = packing.map_or(row.key_words, |packing| packing.words());
        // Checked before anything is reserved, since a reservation would not be undone.
        row.indexes.iter().try_for_each(|spec| {
            check_index(row.name, &IndexPlan::of_spec(spec, packing), key_words)
        })?;
        let table = Arc::new(self.new_core(
            common,
            Plan {
                name: name.into(),
                number: tables.len(),
                row_type: row.name,
                groups: row.groups,
                split: options.splitting.unwrap_or(common.options.splitting)
                    && common.properties.cell_words > 0,
                policy: self.policy_for(common, (name, place), options.policy)?,
                packing,
                key_words,
                hashed_words: key_words,
                show_key: row.show_key,
                ordered: row.ordered
                    || options.ordered
                    || common.options.factors.has(Factor::OrderedOnly),
                capacity,
                log_number: None,
            },
        )?);
        let mut cores = vec![table.clone()];
        for (number, spec) in row.indexes.iter().enumerate() {
            let index = IndexPlan::of_spec(spec, packing);
            let entries =
                self.new_entries(common, &table, &index, tables.len() + cores.len(), capacity)?;
            cores.push(entries.clone());
            let index = table.indexes.add(index.with_entries(number, entries));
            for stage in [Stage::Kept, Stage::Enforced, Stage::Readable] {
                table.indexes.set(index, stage, true);
            }
        }
        Ok(cores)
    }

    /// Returns the policy of a new table. The program has `place` tables before it. The engine's
    /// own tables are never locked before the commit.
    fn policy_for(
        &self,
        common: &Common,
        (name, place): (&str, usize),
        wanted: Option<Policy>,
    ) -> Result<Policy, Error> {
        match (self.locks(), wanted) {
            _ if is_reserved(name) => Ok(Policy::Optimistic),
            (Some(locks), wanted) => Ok(locks.policies.chosen.of_table(name, place, wanted)),
            (None, None) => Ok(Policy::Optimistic),
            (None, Some(_)) => {
                Err(Error::NoPolicies { table: name.to_owned(), protocol: common.properties.name })
            }
        }
    }

    /// Makes the table for the entries of an index.
    fn new_entries(
        &self,
        common: &Common,
        table: &TableCore,
        index: &IndexPlan,
        number: usize,
        capacity: usize,
    ) -> Result<Arc<TableCore>, Error> {
        let primary_words = table.layout.key_words();
        check_index(table.row_type, index, primary_words)?;
        let (key_words, words) = index.entry_words(primary_words);
        let entries = self.new_core(
            common,
            Plan {
                name: format!("{}.{}", table.name, index.name).into(),
                number,
                row_type: table.row_type,
                groups: &ENTRY_GROUPS[words..=words],
                split: false,
                packing: None,
                key_words,
                hashed_words: index.key_words,
                show_key: index.show_key,
                ordered: index.ordered || common.options.factors.has(Factor::OrderedOnly),
                capacity,
                policy: Policy::Optimistic,
                log_number: None,
            },
        )?;
        Ok(Arc::new(entries))
    }

    /// Adds an index, in no stage yet, to a table. The caller prevents other threads from adding an
    /// index to the table meanwhile.
    pub(crate) fn add_index<'t>(
        &self,
        common: &Common,
        table: &'t TableCore,
        plan: IndexPlan,
    ) -> Result<&'t IndexCore, Error> {
        if table.indexes.kept().any(|index| index.name == plan.name) {
            return Err(Error::IndexExists {
                table: table.name.to_string(),
                index: plan.name.to_string(),
            });
        }
        if plan.name.is_empty() {
            return Err(Error::EmptyTableName);
        }
        if let Some(dropped) = table.indexes.dropped_like(&plan) {
            return Ok(dropped);
        }
        let number = table.indexes.next_number().ok_or(Error::TooManyIndexes)?;
        let mut tables = common.tables.write().unwrap_or_else(PoisonError::into_inner);
        let entries = self.new_entries(common, table, &plan, tables.len(), 0)?;
        tables.push(entries.clone());
        Ok(table.indexes.add(plan.with_entries(number, entries)))
    }

    fn new_core(&self, common: &Common, plan: Plan) -> Result<TableCore, Error> {
        let Plan { name, row_type, groups, split, key_words, .. } = plan;
        let protocol = &common.properties;
        let number = u16::try_from(plan.number).map_err(|_| Error::TooManyTables)?;
        let (cell_words, birth_flags) = match self.locks() {
            Some(locks) => {
                let options = locks.policies.mocc();
                (cell_words(plan.policy, options), flags_of(plan.policy, options))
            }
            None => (protocol.cell_words, 0),
        };
        let layout = Layout::new(number, key_words, plan.packing, groups, split, cell_words)
            .map_err(|words| {
                let problem = format!("its records would have {words} words; 65,535 is the most");
                Error::RowType { row: row_type, problem }
            })?;
        let new_slab = |words: usize| {
            let slab = SlabId(self.slabs_made.fetch_add(1, Ordering::Relaxed) as u32);
            Slab::new(slab, words, &common.memory)
        };
        let records = new_slab(layout.total_words());
        let version_slabs = (protocol.version_words > 0).then(|| {
            let largest = groups.iter().map(|group| group.words).max().unwrap_or(0);
            let payload = if split { largest } else { image_words(groups) };
            let whole = new_slab(protocol.version_words + payload + protocol.spare_words);
            let short = (protocol.short_version_words > 0).then(|| {
                let are_short = whole.block_words() <= protocol.short_version_words;
                if are_short { whole.clone() } else { new_slab(protocol.short_version_words) }
            });
            (whole, short)
        });
        let index = if plan.ordered {
            let nodes = new_slab(OrderedIndex::NODE_WORDS);
            OrderedIndex::new(nodes, key_words, protocol.node_words).map(TableIndex::Ordered)
        } else {
            let of_key = (key_words, plan.hashed_words);
            let size = Size {
                capacity: plan.capacity,
                grows: !common.options.factors.has(Factor::FixedHash),
            };
            HashIndex::new(
                &common.memory,
                &self.lines,
                of_key,
                protocol.node_words,
                size,
                self.seed,
            )
            .map(TableIndex::Hash)
        };
        let index = index.map_err(|_| common.memory_limit_error())?;
        let deleted_index = match &index {
            TableIndex::Ordered(index) if protocol.keeps_deleted_index => {
                Some(DeletedIndex::beside(index).map_err(|_| common.memory_limit_error())?)
            }
            _ => None,
        };
        let versions =
            version_slabs.map(|(whole, short)| VersionTable { whole, short, deleted_index });
        if let Some(locks) = self.locks() {
            locks.policies.set(number, plan.policy);
        }
        Ok(TableCore {
            database: common.id,
            number,
            log_number: plan.log_number,
            name,
            row_type,
            groups,
            layout,
            show_key: ShowKey::new(plan.show_key),
            index,
            records,
            birth_flags: AtomicU64::new(birth_flags),
            indexes: Indexes::default(),
            linked: Tally::default(),
            versions,
        })
    }
}

/// Returns a table that exists, if its rows are of this type.
#[inline(never)]
fn existing(
    name: &str,
    core: &Arc<TableCore>,
    known: &KnownRow,
    row: &RowType,
) -> Result<FoundTable, Error> {
    match known {
        KnownRow::Typed { id, .. } if *id == row.id => Ok(FoundTable::Ready(core.clone())),
        KnownRow::Typed { path, .. } => {
            // If both types have the same name, the error shows their paths.
            let are_alike = core.row_type == row.name;
            let (wanted, existing) =
                if are_alike { (row.path, *path) } else { (row.name, core.row_type) };
            Err(Error::TableType { table: name.to_owned(), wanted, existing })
        }
        KnownRow::Recovered(schema) => {
            stored::check(schema, row)?;
            Ok(FoundTable::Recovered(core.clone()))
        }
    }
}

/// Adds a table to the files, and returns its number in the log.
#[cold]
#[inline(never)]
fn store_table(
    store: &Store,
    name: &str,
    options: TableOptions,
    row: &RowType,
) -> Result<u16, Error> {
    let schema = stored::schema_of(name, row);
    stored::add(
        store,
        TableSchema {
            ordered: schema.ordered || options.ordered,
            splitting: options.splitting,
            policy: options.policy.map(|policy| policy.name().to_owned()),
            ..schema
        },
    )
}

/// Checks that `index` can be made on the row type `row`, whose primary keys have `primary_words`
/// words.
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

/// Checks the constants of a `Record` implementation.
fn check_row_type(row: &RowType) -> Result<(), Error> {
    let problem = |problem: String| Err(Error::RowType { row: row.name, problem });
    let groups = row.groups;
    if groups.is_empty() || groups.len() > Group::COUNT_MAX {
        return problem(format!(
            "it has {} groups; 1 to {} are possible",
            groups.len(),
            Group::COUNT_MAX
        ));
    }
    if let Some(group) = groups.iter().find(|group| !(1..=RECORD_WORDS_MAX).contains(&group.words))
    {
        let (name, words) = (group.name, group.words);
        return problem(format!(
            "group {name:?} has {words} words; 1 to {RECORD_WORDS_MAX} are possible"
        ));
    }
    if !(1..=KEY_WORDS_MAX).contains(&row.key_words) {
        let words = row.key_words;
        return problem(format!("its key has {words} words; 1 to {KEY_WORDS_MAX} are possible"));
    }
    if row.key_widths.len() != row.key_words {
        let (words, widths) = (row.key_words, row.key_widths.len());
        return problem(format!(
            "its key has {words} words, but `Key::WIDTHS` has the widths of {widths}"
        ));
    }
    if let Some(width) = row.key_widths.iter().find(|width| !(1..=u64::BITS).contains(width)) {
        return problem(format!(
            "a word of its key is said to have {width} bits; 1 to 64 are possible"
        ));
    }
    if row.indexes.len() > INDEXES_MAX {
        return problem(format!(
            "it has {} indexes; {INDEXES_MAX} are possible",
            row.indexes.len()
        ));
    }
    let (image, words) = (row.image_words, image_words(groups));
    if image != words {
        return problem(format!(
            "its image has {image} words but its groups have {words}; use [u64; {words}]"
        ));
    }
    Ok(())
}
