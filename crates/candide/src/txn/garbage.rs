//! What transactions leave behind: absent records to bury, and unlinked memory to free.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::protocol::{Burial, Context, Engine, Local, Protocol, Retired, TableCore};
use crate::record::CellAt;
use std::collections::VecDeque;
use std::sync::Arc;

/// Records looked at in one collection, beside twice as many as have been added since the last: few enough not to be
/// felt, more than come in.
const BUDGET_MIN: usize = 256;

/// A session's garbage, which its session collects while it is active and the advancer when it is not.
///
/// Both queues are in the order of their epochs, so a collection ends at the first entry that is too young.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Absent records by their first unit, with the epoch they were queued in; each is in one queue of the database.
    burials: VecDeque<(Epoch, CellAt)>,
    /// Unlinked memory with its stamp.
    retired: VecDeque<(Epoch, Retired)>,
    added: usize,
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
        self.added += local.burials.len() + local.retired.len();
        let now = engine.epochs.now();
        self.burials.extend(local.burials.drain(..).map(|first| (now, first)));
        self.stamp_retired(engine, &mut local.retired);
    }

    fn stamp_retired<P: Protocol>(&mut self, engine: &Engine<P>, retired: &mut Vec<Retired>) {
        if !retired.is_empty() {
            let stamp = engine.epochs.stamp();
            self.retired.extend(retired.drain(..).map(|retired| (stamp, retired)));
        }
    }

    /// Buries and frees what can be, but not much more than came in since the last time. The caller is pinned.
    pub(crate) fn collect<P: Protocol>(&mut self, engine: &Engine<P>, local: &mut Local) {
        let budget = BUDGET_MIN + 2 * std::mem::take(&mut self.added);
        let tables = engine.tables.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let tables: &[Arc<TableCore>] = &tables;
        for _ in 0..budget {
            if !self.retired.front().is_some_and(|&(stamp, _)| engine.epochs.is_free(stamp)) {
                break;
            }
            let (_, retired) = self.retired.pop_front().expect("it has just been seen");
            retired.free(tables, &mut local.caches);
        }
        let bound = engine.epochs.bound();
        let mut units = Vec::new();
        for _ in 0..budget {
            if self.burials.front().is_none_or(|&(queued, _)| queued >= bound) {
                break;
            }
            let (_, first) = self.burials.pop_front().expect("it has just been seen");
            let table = &tables[usize::from(first.table())];
            units.clear();
            units.extend(table.layout.units().map(|unit| table.layout.at(first.record(), unit)));
            match P::bury(&mut Context::new(engine, local), &units, bound) {
                Burial::Alive => {}
                Burial::NotYet => self.burials.push_back((engine.epochs.now(), first)),
                Burial::Dead => Context::new(engine, local).unlink(first.record(), table, |node| {
                    units.iter().for_each(|&unit| P::bequeath(node, unit));
                }),
            }
        }
        self.stamp_retired(engine, &mut local.retired);
    }
}
