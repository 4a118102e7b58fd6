//! What transactions leave behind: absent records to bury, old versions to collect, and unlinked memory to free.

#![forbid(unsafe_code)]

use crate::epoch::Epoch;
use crate::protocol::{Burial, Context, Due, Engine, Local, Protocol, Retired, TableCore};
use std::collections::VecDeque;
use std::sync::Arc;

/// Records looked at in one collection, beside twice as many as have been added since the last: few enough not to be
/// felt, more than come in.
const BUDGET_MIN: usize = 256;

/// Records that are looked at one after another, once all of them have been asked for: as many as a core waits for at a time.
const TOGETHER: usize = 16;

/// A session's garbage, which its session collects while it is active and the advancer when it is not.
///
/// Both queues are in the order of their epochs, so a collection ends at the first entry that is too young.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// Absent records by their first unit, and units with old versions; each is in one queue of the database.
    burials: VecDeque<Due>,
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
        self.added += local.burials.len();
        if !local.burials.is_empty() {
            let (time, queued) = (P::time(&engine.clock), engine.epochs.now());
            self.burials.extend(local.burials.drain(..).map(|at| Due { at, queued, time, note: 0 }));
        }
        self.stamp_retired(engine, &mut local.retired);
    }

    fn stamp_retired<P: Protocol>(&mut self, engine: &Engine<P>, retired: &mut Vec<Retired>) {
        if !retired.is_empty() {
            self.added += retired.len();
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
        if self.burials.is_empty() {
            return;
        }
        P::begin_collecting(&mut Context::new(engine, local));
        let (time, bound) = (P::time(&engine.clock), engine.epochs.bound());
        let mut units = Vec::new();
        let (mut left, mut next) = (budget, Vec::with_capacity(TOGETHER));
        loop {
            while next.len() < left.min(TOGETHER) && self.burials.front().is_some_and(|due| due.queued < bound) {
                next.extend(self.burials.pop_front());
            }
            if next.is_empty() {
                break;
            }
            left -= next.len();
            P::approach(next.iter().map(|due| due.at));
            for mut due in next.drain(..) {
                let table = &tables[usize::from(due.at.table())];
                units.clear();
                units.extend(table.layout.units().map(|unit| table.layout.at(due.at.record(), unit)));
                match P::bury(&mut Context::new(engine, local), &mut due, &units, bound) {
                    Burial::Alive => {}
                    Burial::NotYet => self.burials.push_back(Due { queued: engine.epochs.now(), time, ..due }),
                    Burial::Dead => Context::new(engine, local).unlink(due.at.record(), table, |node| {
                        units.iter().for_each(|&unit| P::bequeath(node, unit));
                    }),
                }
            }
        }
        self.stamp_retired(engine, &mut local.retired);
    }
}
