//! The making of tables and indexes, independent of their row types.

#![forbid(unsafe_code)]

use super::described::{fields_of, key_parts};
use super::former::FormerOptions;
use super::options::{Made, TableOptions};
use super::row_type::{check_index, check_row_type};
use super::{Catalog, Known, KnownRow, stored};
use crate::engine::{
    AtLinks, Common, IndexCore, IndexPlan, Indexes, LogNumber, Owner, Restrictions, ShowKey, Stage,
    TableCore, VersionTable,
};
use crate::error::Error;
use crate::factor::Factor;
use crate::index::{DeletedIndex, HashIndex, OrderedIndex, Size, TableIndex};
use crate::locks::{FROZEN, cell_words, flags_of};
use crate::memory::{LONG_SLABS, LongMemory, Slab, SlabId};
use crate::policy::Policy;
use crate::record::Layout;
use crate::schema::{Group, KEY_WORDS_MAX, KeyPacking, RowType, Show, all_groups, image_words};
use crate::sync::{Mutex, Ordering, lock};
use candide_log::LongColumns;
use candide_log::schema::TableSchema;
use std::str::FromStr;
use std::sync::{Arc, OnceLock, PoisonError};

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
    has_values: bool,
    /// The words of a row that may name values outside of records: their numbers among all words
    /// outside of the key.
    named: Box<[u16]>,
    permanent: bool,
    /// The groups that cannot be changed, one bit each.
    frozen: u64,
    /// The dropped table whose number and memory the new one gets. Both have the same layout.
    former: Option<Arc<TableCore>>,
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

/// Returns whether the entries of an index are kept in order.
fn is_ordered(common: &Common, index: &IndexPlan) -> bool {
    index.ordered || common.options.factors.has(Factor::OrderedOnly)
}

impl Catalog {
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
        let core = self.new_core(
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
                has_values: false,
                named: LongColumns::of(schema).places().collect(),
                permanent: false,
                frozen: 0,
                former: None,
            },
        )?;
        if !schema.fields.is_empty() {
            let _ = core.key_parts.set(key_parts(&schema.fields));
        }
        let row = KnownRow::Recovered(Box::new(schema.clone()));
        let known =
            Known { number: tables.len(), row, made: Made::RECOVERED, options: None, indexes: &[] };
        names.insert(&schema.name, known);
        tables.push(core.clone());
        Ok(core)
    }

    /// Makes a table and its indexes, and returns them with the table first. `place` is the number
    /// of the program's tables before it. The numbers of the new tables follow those of the
    /// existing tables, unless they are those of a dropped table with such rows.
    pub(super) fn new_table(
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
            check_index(row.name, &IndexPlan::of_spec(spec, packing, row), key_words)
        })?;
        let policy = self.policy_for(common, (name, place), options.policy)?;
        let former = self.former.find(row.id, FormerOptions::of(&options, common, policy));
        // The keys of a table from the files are not packed.
        let is_alike = former.first().is_none_or(|of| of.layout.packs_keys() == packing.is_some());
        let former = |place: usize| former.get(place).filter(|_| is_alike).cloned();
        let number_of = |place: usize| {
            former(place).map_or(tables.len() + place, |former| former.number.into())
        };
        let table = self.new_core(
            common,
            Plan {
                name: name.into(),
                number: number_of(0),
                row_type: row.name,
                groups: row.groups,
                split: options.splitting.unwrap_or(common.options.splitting)
                    && common.properties.cell_words > 0,
                policy,
                packing,
                key_words,
                hashed_words: key_words,
                show_key: row.show_key,
                ordered: row.ordered
                    || options.ordered
                    || common.options.factors.has(Factor::OrderedOnly),
                capacity,
                log_number: None,
                has_values: options.has_values,
                named: options.named(row).into(),
                permanent: options.permanent,
                frozen: if options.frozen { all_groups(row.groups.len()) } else { 0 },
                former: former(0),
            },
        )?;
        let _ = table.key_parts.set(key_parts(&fields_of(row)));
        let _ = table.fields.set(row.fields);
        let mut cores = vec![table.clone()];
        for (number, spec) in row.indexes.iter().enumerate() {
            let index = IndexPlan::of_spec(spec, packing, row);
            let place = (number_of(cores.len()), former(cores.len()));
            let entries = self.new_entries(common, &table, &index, place, capacity)?;
            cores.push(entries.clone());
            let index = table.indexes.add(index.with_entries(number, entries));
            for stage in [Stage::Kept, Stage::Enforced, Stage::Readable] {
                table.indexes.set(index, stage, true);
            }
        }
        Ok(cores)
    }

    /// Makes the table for the entries of an index.
    fn new_entries(
        &self,
        common: &Common,
        table: &TableCore,
        index: &IndexPlan,
        (number, former): (usize, Option<Arc<TableCore>>),
        capacity: usize,
    ) -> Result<Arc<TableCore>, Error> {
        let primary_words = table.layout.key_words();
        check_index(table.row_type, index, primary_words)?;
        let (key_words, words) = index.entry_words(primary_words);
        self.new_core(
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
                ordered: is_ordered(common, index),
                capacity,
                policy: Policy::Optimistic,
                log_number: None,
                has_values: false,
                named: Box::default(),
                permanent: false,
                frozen: 0,
                former,
            },
        )
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
        let (key_words, words) = plan.entry_words(table.layout.key_words());
        let is_ordered = is_ordered(common, &plan);
        let former = ENTRY_GROUPS
            .get(words..=words)
            .and_then(|groups| self.former.find_entries(key_words, groups, is_ordered));
        let place = former.as_ref().map_or(tables.len(), |former| former.number.into());
        let entries = self.new_entries(common, table, &plan, (place, former), 0)?;
        self.former.replace(common, &mut tables, vec![entries.clone()]);
        Ok(table.indexes.add(plan.with_entries(number, entries)))
    }

    #[inline(never)]
    fn new_core(&self, common: &Common, plan: Plan) -> Result<Arc<TableCore>, Error> {
        let Plan { row_type, groups, split, key_words, .. } = plan;
        let protocol = &common.properties;
        let number = u16::try_from(plan.number).map_err(|_| Error::TooManyTables)?;
        let (cell_words, new_record_flags) = match self.locks() {
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
            })?
            .with_named(&plan.named);
        let names_blocks = !plan.named.is_empty() && !plan.has_values;
        if names_blocks {
            common.long.get_or_init(|| {
                let first = self.slabs_made.fetch_add(LONG_SLABS as u64, Ordering::Relaxed);
                Box::new(LongMemory::new(SlabId(first as u32), &common.memory))
            });
        }
        let former = plan.former.as_deref();
        let new_slab = |words: usize| {
            let slab = SlabId(self.slabs_made.fetch_add(1, Ordering::Relaxed) as u32);
            Slab::new(slab, words, &common.memory)
        };
        let records = match former {
            Some(former) => former.records.clone(),
            None => new_slab(layout.total_words()),
        };
        let of_former = former.and_then(|former| former.versions.as_ref());
        let of_former = of_former.map(|versions| (versions.whole.clone(), versions.short.clone()));
        let has_versions = protocol.version_words > 0;
        let version_slabs = of_former.or_else(|| {
            has_versions.then(|| {
                let largest = groups.iter().map(|group| group.words).max().unwrap_or(0);
                let payload = if split { largest } else { image_words(groups) };
                let whole = new_slab(protocol.version_words + payload + protocol.spare_words);
                let short = (protocol.short_version_words > 0).then(|| {
                    let are_short = whole.block_words() <= protocol.short_version_words;
                    if are_short { whole.clone() } else { new_slab(protocol.short_version_words) }
                });
                (whole, short)
            })
        });
        let index = self.new_index(common, &plan, former, &new_slab)?;
        let deleted_index = match &index {
            TableIndex::Ordered(index) if protocol.keeps_deleted_index => {
                Some(DeletedIndex::beside(index).map_err(|_| common.memory_limit_error())?)
            }
            _ => None,
        };
        let versions =
            version_slabs.map(|(whole, short)| VersionTable { whole, short, deleted_index });
        if let Some(locks) = self.locks() {
            locks.policies.begin(number, plan.policy);
            locks.policies.set_permanent(number, plan.permanent);
            locks.policies.freeze(number, layout.frozen_units(plan.frozen, groups.len()));
        }
        // So a delete notes the blocks that it replaces.
        let is_restricted = plan.permanent || plan.frozen != 0 || names_blocks;
        let flags = new_record_flags | if plan.frozen == 0 { 0 } else { FROZEN };
        Ok(Arc::new(TableCore {
            owner: Owner::new(common.id),
            number,
            log_number: LogNumber::new(plan.log_number),
            adoption: Mutex::new(()),
            name: plan.name.into(),
            row_type,
            groups,
            layout,
            show_key: ShowKey::new(plan.show_key),
            key_parts: OnceLock::new(),
            fields: OnceLock::new(),
            index,
            records,
            at_links: AtLinks::new(flags),
            indexes: Indexes::new(is_restricted),
            restrictions: Restrictions::new(plan.permanent, plan.frozen),
            linked: former.map_or_else(Arc::default, |former| former.linked.clone()),
            versions,
            has_values: plan.has_values,
        }))
    }

    /// Makes the index of a table, in the memory of `former` if there is one.
    fn new_index(
        &self,
        common: &Common,
        plan: &Plan,
        former: Option<&TableCore>,
        new_slab: &dyn Fn(usize) -> Arc<Slab>,
    ) -> Result<TableIndex, Error> {
        let node_words = common.properties.node_words;
        let index = if plan.ordered {
            let nodes = match former.map(|former| &former.index) {
                Some(index @ TableIndex::Ordered(_)) => index.blocks().clone(),
                _ => new_slab(OrderedIndex::NODE_WORDS),
            };
            OrderedIndex::new(nodes, plan.key_words, node_words).map(TableIndex::Ordered)
        } else {
            let of_key = (plan.key_words, plan.hashed_words);
            let grows = !common.options.factors.has(Factor::FixedHash);
            let size = Size { capacity: plan.capacity, grows };
            HashIndex::new(&common.memory, &self.lines, of_key, node_words, size, self.seed)
                .map(TableIndex::Hash)
        };
        index.map_err(|_| common.memory_limit_error())
    }
}
