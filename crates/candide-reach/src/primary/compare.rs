//! Comparing the log of a place with the local one, record by record, and the tables of both.

#![forbid(unsafe_code)]

use super::note::Known;
use crate::leader::Position;
use crate::object::Object;
use crate::receiver::{Receiver, Refusal};
use candide::replica::is_own_table;
use candide_log::OpenError;
use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log::format::commit::records;
use candide_log::schema::TableSchema;
use candide_log::store::{LocalBlock, LocalBlocks, LogPlace, Unopened};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// The place and the local log differ.
#[derive(Debug)]
pub(super) struct Different(pub(super) String);

impl Display for Different {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Different {}

impl Known {
    /// Returns the bytes of records in the directory that the place lacks.
    pub(super) fn lacking(self, unopened: &Unopened<'_>) -> Result<u64, OpenError> {
        let compare = Compare::new(unopened.blocks(self.local)?, self.local, Some(self))?;
        Ok(compare.rest()?.0)
    }
}

/// A receiver of the blocks of a place, which have to be in the local log, in the same order.
pub(super) struct Compare<'a> {
    local: LocalBlocks<'a>,
    /// The block that is being compared, and the number of its words that the place has.
    current: Option<LocalBlock>,
    words: usize,
    /// The place behind the last block that the place has as a whole.
    end: LogPlace,
    /// The stamp generation and the cut of the last object.
    cut: (u64, u64),
    /// By the generation of the local log, the cuts that the place has, and those here.
    closed: BTreeMap<u64, u64>,
    closed_here: BTreeMap<u64, u64>,
    /// Whether another directory has led since, so that later cuts are none of the local log.
    is_other: bool,
    /// Whether the place has only a snapshot of what follows.
    pub(super) has_met_snapshot: bool,
    /// The generation of the last leader whose first object has been read, and the tables as a
    /// reader of the last object knows them.
    pub(super) tables: Option<(u64, Names)>,
}

/// The names of the tables in use, by their numbers. Those that a standby has for itself are left
/// out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Names(BTreeMap<u32, String>);

impl Names {
    pub(super) fn of(tables: &[TableSchema]) -> Names {
        let mut names = Names::default();
        names.change(tables);
        names
    }

    fn change(&mut self, tables: &[TableSchema]) {
        for table in tables {
            if table.is_in_use() && !is_own_table(&table.name) {
                self.0.insert(table.number, table.name.clone());
            } else {
                self.0.remove(&table.number);
            }
        }
    }

    /// Returns an error unless the place, whose tables these are, has the same as the directory.
    pub(super) fn check(&self, here: &Names) -> Result<(), OpenError> {
        let only = |one: &Names, other: &Names| {
            one.0
                .iter()
                .find(|(number, name)| other.0.get(number) != Some(name))
                .map(|of| of.1.clone())
        };
        let what = match (only(self, here), only(here, self)) {
            (None, None) => return Ok(()),
            (Some(there), None) => format!("table {there:?} is only in the place"),
            (None, Some(name)) => format!("table {name:?} is only here"),
            (Some(there), Some(name)) => {
                format!("table {there:?} is only in the place, and {name:?} only here")
            }
        };
        Err(OpenError::Diverged { what })
    }
}

impl<'a> Compare<'a> {
    /// Compares from what is known on.
    pub(super) fn new(
        mut local: LocalBlocks<'a>,
        begin: LogPlace,
        known: Option<Known>,
    ) -> Result<Compare<'a>, OpenError> {
        let words = known.map_or(0, |known| known.words as usize);
        let current = if words > 0 { local.next_block()? } else { None };
        let cut = known.map_or((0, 0), |known| known.cut);
        Ok(Compare {
            local,
            current,
            words,
            end: begin,
            cut,
            closed: BTreeMap::from([cut]),
            closed_here: BTreeMap::new(),
            is_other: false,
            has_met_snapshot: false,
            tables: None,
        })
    }

    /// Returns what is known now, if the place has the log up to `position`.
    pub(super) fn known(&mut self, position: Position) -> Known {
        self.pass_whole();
        Known { position, local: self.end, words: self.words as u64, cut: self.cut }
    }

    /// Returns the numbers of bytes and of commit records that the place lacks. A record that waits
    /// there for a cut, and has it here, counts if there is no other.
    pub(super) fn rest(mut self) -> Result<(u64, u64), OpenError> {
        let (mut bytes, mut count) = (0, 0);
        while self.go_on()? {
            if let Some(block) = &self.current {
                bytes += size_of_val(&block.records[self.words..]) as u64;
                count += records(&block.records[self.words..]).count() as u64;
                self.words = block.records.len();
            }
        }
        let closed = |generation| self.closed.get(generation).copied().unwrap_or(0);
        if self.closed_here.iter().any(|(generation, cut)| *cut > closed(generation)) {
            count = count.max(1);
        }
        Ok((bytes, count))
    }

    /// Goes on to the next block if the place has all of the current one.
    fn pass_whole(&mut self) {
        if let Some(block) = self.current.take_if(|block| block.records.len() <= self.words) {
            (self.end, self.words) = (block.end, 0);
            close(&mut self.closed_here, block.generation, block.cut);
        }
    }

    /// Goes on to a block with further words. Returns whether there is one.
    fn go_on(&mut self) -> Result<bool, OpenError> {
        loop {
            self.pass_whole();
            if self.current.is_some() {
                return Ok(true);
            }
            self.current = self.local.next_block()?;
            if self.current.is_none() {
                return Ok(false);
            }
        }
    }
}

/// Notes that a cut of a generation is closed.
fn close(closed: &mut BTreeMap<u64, u64>, generation: u64, cut: u64) {
    let before = closed.entry(generation).or_default();
    *before = cut.max(*before);
}

impl Receiver for Compare<'_> {
    fn begin(&mut self, _: &Object) -> Result<(), Refusal> {
        self.has_met_snapshot = true;
        let what = "the place has only a snapshot of what this directory is known to have lacked";
        Err(Box::new(Different(what.to_string())))
    }

    fn part(&mut self, _: &Object) -> Result<(), Refusal> {
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        Ok(())
    }

    fn block(&mut self, object: &Object) -> Result<(), Refusal> {
        let header = &object.header;
        let different = |what: String| -> Result<(), Refusal> {
            let (generation, place) = (header.generation, header.place);
            let what = format!("block {place} of generation {generation} of the place {what}");
            Err(Box::new(Different(what)))
        };
        let (words, rest) = object.payload().as_chunks::<8>();
        if !rest.is_empty() {
            return different("does not consist of words".to_string());
        }
        let mut words = words;
        while !words.is_empty() {
            if !self.go_on()? {
                return different("has commits that this directory lacks".to_string());
            }
            let block = self.current.as_ref().expect("there is another block");
            if block.generation != header.stamp_generation {
                let (there, here) = (header.stamp_generation, block.generation);
                return different(format!("has commits of generation {there}, and here is {here}"));
            }
            let here = &block.records[self.words..];
            let (same, later) = words.split_at(words.len().min(here.len()));
            if !same.iter().zip(here).all(|(there, here)| u64::from_le_bytes(*there) == *here) {
                return different("has other commits than this directory".to_string());
            }
            self.words += same.len();
            words = later;
        }
        if let Some(Catalog { kind, tables }) = Catalog::decode(object.catalog())? {
            match (kind, &mut self.tables) {
                (CatalogKind::Whole { is_anew, .. }, known) => {
                    self.is_other |= is_anew;
                    *known = Some((header.generation, Names::of(&tables)));
                }
                (CatalogKind::Changes, Some((_, known))) => known.change(&tables),
                (CatalogKind::Changes, None) => {}
            }
        }
        self.cut = (header.stamp_generation, header.cut);
        if !self.is_other {
            close(&mut self.closed, header.stamp_generation, header.cut);
        }
        Ok(())
    }
}
