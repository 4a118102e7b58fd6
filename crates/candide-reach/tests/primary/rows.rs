//! A reader of a place.

use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log::format::checkpoint::{Contents, PartDecoder};
use candide_log::format::commit::records;
use candide_log::schema::TableSchema;
use candide_reach::object::Object;
use candide_reach::sim::SimPlace;
use candide_reach::{Follower, Patience, Position, Progress, Receiver, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a reader of the place makes of it: rows by table and key, and the cut.
#[derive(Debug, Default)]
pub struct Rows {
    pub tables: BTreeMap<u32, String>,
    pub rows: BTreeMap<(u16, u64), Vec<u64>>,
    pub generation: u64,
    pub own: u64,
    pub cut: u64,
    /// Tables of which records mean nothing.
    dropped: BTreeSet<u32>,
    /// Records above the cut.
    pending: Vec<u64>,
    pub blocks: usize,
    pub snapshots: usize,
}

impl Rows {
    fn set(&mut self, tables: Vec<TableSchema>) {
        for table in tables {
            if table.is_dropped() {
                self.tables.remove(&table.number);
                self.dropped.insert(table.number);
            } else {
                self.dropped.remove(&table.number);
                self.tables.insert(table.number, table.name);
            }
        }
    }
}

impl Receiver for Rows {
    fn begin(&mut self, floor: &Object) -> Result<(), Refusal> {
        let header = floor.header;
        let (state, blocks) = ((header.stamp_generation, header.cut), self.blocks);
        let snapshots = self.snapshots + 1;
        *self = Rows { generation: state.0, cut: state.1, blocks, snapshots, ..Rows::default() };
        Ok(())
    }

    fn part(&mut self, part: &Object) -> Result<(), Refusal> {
        if let Some(catalog) = Catalog::decode(part.catalog())? {
            let CatalogKind::Whole { own, behind, .. } = catalog.kind else {
                return Err("a snapshot has the whole catalog".into());
            };
            assert_eq!(behind, (self.generation, self.cut));
            self.own = own;
            self.set(catalog.tables);
        }
        if part.payload().is_empty() {
            return Ok(());
        }
        let (mut decoder, _) = PartDecoder::of_whole(part.payload())?;
        while decoder.left() > 0 {
            let block = decoder.block(&part.payload()[decoder.offset() as usize..])?;
            if let Contents::Rows { table, .. } = block.contents {
                for (key, words) in block.rows().filter(|_| self.tables.contains_key(&table)) {
                    self.rows.insert((table as u16, key[0]), words.to_vec());
                }
            }
            block.records().for_each(|record| self.pending.extend_from_slice(record.words()));
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, object: &Object) -> Result<(), Refusal> {
        let header = object.header;
        if let Some(catalog) = Catalog::decode(object.catalog())? {
            if let CatalogKind::Whole { own, behind, is_anew } = catalog.kind {
                assert_eq!(behind, (self.generation, self.cut));
                self.own = own;
                if is_anew {
                    self.pending.clear();
                    self.cut = 0;
                }
            }
            self.set(catalog.tables);
        }
        if header.stamp_generation != self.generation {
            self.pending.clear();
            (self.generation, self.cut) = (header.stamp_generation, 0);
        }
        assert!(header.cut >= self.cut, "a cut goes back");
        self.cut = header.cut;
        let mut words = std::mem::take(&mut self.pending);
        let (payload, rest) = object.payload().as_chunks::<8>();
        assert!(rest.is_empty());
        words.extend(payload.iter().map(|word| u64::from_le_bytes(*word)));
        let mut due = Vec::new();
        for record in records(&words) {
            let record = record?;
            match record.stamp <= header.cut {
                true => due.push((record.version, record.words().to_vec())),
                false => self.pending.extend_from_slice(record.words()),
            }
        }
        due.sort_by_key(|(version, _)| *version);
        for (_, words) in due {
            for record in records(&words) {
                for change in record?.entries() {
                    if self.dropped.contains(&change.table.into()) {
                        continue;
                    }
                    assert!(self.tables.contains_key(&change.table.into()), "an unknown table");
                    let row = self.rows.entry((change.table, change.key[0])).or_insert(vec![0]);
                    row[usize::from(change.first)] = change.words[0];
                }
            }
        }
        self.blocks += 1;
        Ok(())
    }
}

/// Reads all that is in a place.
pub fn read(place: &SimPlace, database: [u8; 16]) -> (Rows, Position) {
    let mut rows = Rows::default();
    let mut follower =
        Follower::new(Arc::new(place.clone()), database, Position::default(), Patience::default());
    while follower.step(&mut rows).unwrap() != Progress::Nothing {}
    (rows, follower.position())
}

/// Returns the counts of the items that a place has, by key.
pub fn counts(place: &SimPlace, database: [u8; 16]) -> BTreeMap<u64, i64> {
    let rows = read(place, database).0.rows;
    rows.into_iter().map(|((_, key), words)| (key, words[0] as i64)).collect()
}
