//! What transactions leave behind: absent records to bury, and unlinked memory to free.

use crate::epoch::Epoch;
use crate::protocol::{Burial, Context, Engine, Local, Protocol, Retired, TableCore};
use crate::record::CellAt;
use std::collections::VecDeque;
use std::sync::Arc;

/// A session's garbage, which its session collects while it is active and the advancer when it is not.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Absent records by their first unit; each is in one queue of the database at most.
    burials: VecDeque<CellAt>,
    /// Unlinked memory with its stamp, oldest first.
    retired: VecDeque<(Epoch, Retired)>,
}

impl Garbage {
    pub(crate) fn is_empty(&self) -> bool {
        self.burials.is_empty() && self.retired.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.burials.len() + self.retired.len()
    }

    /// Takes over what a session has put aside. The caller is still pinned, or has unlinked nothing.
    pub(crate) fn take_from<P: Protocol>(&mut self, engine: &Engine<P>, local: &mut Local) {
        self.burials.extend(local.burials.drain(..));
        self.stamp_retired(engine, &mut local.retired);
    }

    fn stamp_retired<P: Protocol>(&mut self, engine: &Engine<P>, retired: &mut Vec<Retired>) {
        if !retired.is_empty() {
            let stamp = engine.epochs.stamp();
            self.retired.extend(retired.drain(..).map(|retired| (stamp, retired)));
        }
    }

    /// Buries and frees what can be, looking at no more than `budget` records. The caller is pinned.
    pub(crate) fn collect<P: Protocol>(&mut self, engine: &Engine<P>, local: &mut Local, budget: usize) {
        if self.is_empty() {
            return;
        }
        let tables = engine.tables.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let tables: &[Arc<TableCore>] = &tables;
        while let Some((stamp, _)) = self.retired.front()
            && engine.epochs.is_free(*stamp)
        {
            let (_, retired) = self.retired.pop_front().expect("it has just been seen");
            retired.free(tables, &mut local.caches);
        }
        let bound = engine.epochs.bound();
        let mut units = Vec::new();
        for _ in 0..self.burials.len().min(budget) {
            let first = self.burials.pop_front().expect("as many as were counted");
            let table = &tables[usize::from(first.table())];
            units.clear();
            units.extend(table.layout.units().map(|unit| table.layout.at(first.record(), unit)));
            match P::bury(&units, bound) {
                Burial::Alive => {}
                Burial::NotYet => self.burials.push_back(first),
                Burial::Dead => Context::new(engine, local).unlink(first.record(), table, |node| {
                    units.iter().for_each(|&unit| P::bequeath(node, unit));
                }),
            }
        }
        self.stamp_retired(engine, &mut local.retired);
    }
}
