//! What applies objects to the database of a standby.

#![forbid(unsafe_code)]

use super::error::StandbyError;
use super::generations::Generations;
use super::note::{End, Noted};
use super::parts::{self, PartError};
use super::reached::Reached;
use super::sums::{self, Sums};
use crate::leader::Position;
use crate::object::{FloorNumber, Header, Link, Object};
use crate::receiver::{Receiver, Refusal};
use candide::replica::{Replica, ReplicaError};
use candide::{Database, Mvcc};
use candide_log::batches::Batches;
use candide_log::format::Uuid;
use candide_log::format::catalog::{Catalog, CatalogKind};
use std::collections::VecDeque;
use std::sync::Arc;

/// Why the applier has refused an object.
#[derive(Debug)]
pub(super) enum Refused {
    /// The log goes on behind another state than that here.
    Elsewhere,
    /// The replica has ended.
    Over(String),
}

/// What applies objects, and knows which commit records wait for a cut.
pub(super) struct Applier {
    replica: Replica<Mvcc>,
    database: Uuid,
    /// The last object that has been applied; `None` before the first.
    noted: Option<Noted>,
    /// The records that wait, of the stamp generation of the state.
    batches: Batches,
    /// The positions before the objects from which records wait, with the number of words of each.
    waiting: VecDeque<Position>,
    /// The last object of those that are read again, after a restart, for the records that wait.
    again_until: Option<Link>,
    /// The generation and the place of the latest object that readers have been shown.
    shown: (u64, u64),
    generations: Generations,
    /// The parts of a snapshot that have been taken in: whether there is one, and pending records.
    loading: Option<Vec<u64>>,
    /// The stamp generation of the leader that has written them.
    loading_own: u64,
    floor: Option<Object>,
    sums: Sums,
    refused: Option<Refused>,
    reached: Arc<Reached>,
}

impl Applier {
    /// Returns the applier of a replica. `before` is what the replica has noted last, also before a
    /// snapshot that is not complete.
    pub(super) fn new(
        replica: Replica<Mvcc>,
        database: Uuid,
        before: Option<Noted>,
        reached: Arc<Reached>,
    ) -> Applier {
        let noted = replica.note().map(|note| Noted::of(&note));
        let mut generations = Generations::default();
        if let Some(Noted { last, state, own, earlier, .. }) = before {
            generations = Generations::of(last.generation, &earlier);
            generations.reach(last.generation, own, state);
            reached.begin(generations.clone());
        }
        let cut = noted.map_or(0, |noted| noted.state.1);
        let is_behind = |noted: &Noted| noted.resume.last != noted.last;
        let again_until = noted.filter(is_behind).map(|noted| noted.last);
        if let Some(Noted { last, .. }) = noted {
            reached.apply(last.generation, last.place);
        }
        Applier {
            replica,
            database,
            noted,
            batches: Batches::after(cut, Vec::new()),
            waiting: VecDeque::new(),
            again_until,
            shown: before.map_or((0, 0), |before| before.shown),
            generations,
            loading: None,
            loading_own: 0,
            floor: None,
            sums: Sums::default(),
            refused: None,
            reached,
        }
    }

    pub(super) fn database(&self) -> Uuid {
        self.database
    }

    /// Returns whether the database has a whole state that is not older than what readers have been
    /// shown, and all records that wait are known.
    pub(super) fn is_whole(&self) -> bool {
        let is_new = self.noted.is_some_and(|noted| place_of(noted.last) >= self.shown);
        is_new && self.loading.is_none() && self.again_until.is_none()
    }

    /// Returns the generation and the place of the latest object that readers have been shown, and
    /// of the last one that the database has.
    pub(super) fn shown(&self) -> ((u64, u64), (u64, u64)) {
        (self.shown, self.noted.map_or((0, 0), |noted| place_of(noted.last)))
    }

    /// Returns why an object has just been refused, if the replica has refused it.
    pub(super) fn take_refusal(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    /// Returns the floor that a block has named and that is to be compared with the state here.
    pub(super) fn floor_to_compare(&mut self) -> Option<FloorNumber> {
        self.sums.take_floor()
    }

    /// Compares what a floor says with the state here after the same object. Returns the
    /// difference, if there is one.
    pub(super) fn compare(&self, floor: &Object) -> Option<String> {
        self.sums.compare(floor)
    }

    /// Ends following for good: the directory says so.
    pub(super) fn end(mut self) -> Result<Database<Mvcc>, StandbyError> {
        let ended = self.note_end(End::Alone);
        ended.map_err(|error| StandbyError::Stopped(error.to_string()))?;
        self.promote(&mut |_| Ok(()))
    }

    /// Notes that the rows here differ from the leader's. If that is not possible, another opening
    /// may follow until the next comparison.
    pub(super) fn note_difference(&mut self) {
        let _ = self.note_end(End::Different);
        let _ = self.replica.database().sync();
    }

    fn note_end(&mut self, end: End) -> Result<(), ReplicaError> {
        let Some(noted) = self.noted else { return Ok(()) };
        self.replica.apply(&[], &[], &Noted { end, ..noted }.note())
    }

    /// Ends following. Calls `ready` as [`Replica::promote_with`] does.
    pub(super) fn promote(
        self,
        ready: &mut dyn FnMut(bool) -> Result<(), candide::Error>,
    ) -> Result<Database<Mvcc>, StandbyError> {
        let promoted = self.replica.promote_with(ready);
        promoted.map_err(|error| StandbyError::Stopped(error.to_string()))
    }

    fn over(&mut self, what: String) -> Refusal {
        self.refused = Some(Refused::Over(what.clone()));
        what.into()
    }

    fn check(&mut self, applied: Result<(), ReplicaError>) -> Result<(), Refusal> {
        applied.map_err(|error| self.over(error.to_string()))
    }

    /// Returns the stamp generation and the cut of the last object.
    pub(super) fn state(&self) -> (u64, u64) {
        self.noted.map_or((0, 0), |noted| noted.state)
    }

    /// Takes the records of an object that were applied before the restart, as far as they waited.
    fn read_again(&mut self, block: &Object, last: Link) -> Result<(), Refusal> {
        let (generation, cut) = self.state();
        let header = block.header;
        let catalog = Catalog::decode(block.catalog())?;
        let is_anew =
            |catalog: &Catalog| matches!(catalog.kind, CatalogKind::Whole { is_anew: true, .. });
        if catalog.as_ref().is_some_and(is_anew) {
            self.forget_waiting(cut);
        }
        if header.stamp_generation == generation {
            let mut waiting = Vec::new();
            for record in candide_log::format::commit::records(&words_of(block)) {
                let record = record?;
                if record.stamp > cut {
                    waiting.extend_from_slice(record.words());
                }
            }
            if !waiting.is_empty() {
                self.batches.add(cut, waiting)?;
                self.waiting.push_back(before(&header));
            }
        }
        if block.link() == last {
            self.again_until = None;
        }
        Ok(())
    }

    fn forget_waiting(&mut self, cut: u64) {
        self.batches = Batches::after(cut, Vec::new());
        self.waiting.clear();
    }

    /// Returns the position from which a restart reads on.
    fn resume(&self, last: Position) -> Position {
        match self.batches.pending() {
            [] => last,
            _ => self.waiting.front().copied().unwrap_or_default(),
        }
    }
}

/// Returns the generation and the place of an object.
fn place_of(link: Link) -> (u64, u64) {
    (link.generation, link.place)
}

/// Returns the position before a block.
fn before(header: &Header) -> Position {
    let last = header.before;
    Position { last, is_end: last != Link::NONE && last.generation != header.generation }
}

/// Returns the payload of a block as words.
fn words_of(block: &Object) -> Vec<u64> {
    let words = block.payload().chunks_exact(8);
    words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
}

impl Receiver for Applier {
    fn begin(&mut self, floor: &Object) -> Result<(), Refusal> {
        self.loading = Some(Vec::new());
        self.floor = Some(floor.clone());
        self.again_until = None;
        Ok(())
    }

    fn part(&mut self, part: &Object) -> Result<(), Refusal> {
        if part.header.part == 0 {
            let Some(Catalog { kind: CatalogKind::Whole { own, .. }, tables }) =
                Catalog::decode(part.catalog())?
            else {
                return Err("the first part of a snapshot does not have the whole catalog".into());
            };
            self.loading_own = own;
            let begun = self.replica.begin_snapshot(&tables);
            self.check(begun)?;
        }
        let mut pending = self.loading.take().unwrap_or_default();
        // The only part of a snapshot without rows may be empty.
        let loaded = match part.payload() {
            [] => Ok(()),
            rows => parts::load(rows, &mut self.replica, &mut pending),
        };
        self.loading = Some(pending);
        match loaded {
            Ok(()) => Ok(()),
            // Another attempt may read what was written.
            Err(PartError::Malformed(error)) => Err(error.to_string().into()),
            Err(PartError::Replica(what)) => Err(self.over(what)),
        }
    }

    fn complete(&mut self) -> Result<(), Refusal> {
        let (pending, floor) = (self.loading.take().unwrap_or_default(), self.floor.take());
        let Some(floor) = floor else { return Err("a snapshot ends that has not begun".into()) };
        let header = floor.header;
        let state = (header.stamp_generation, header.cut);
        let last = header.before;
        let position = Position { last, is_end: false };
        let resume = if pending.is_empty() { position } else { Position::default() };
        let own = self.loading_own;
        let database = self.database;
        self.generations.leap();
        self.generations.reach(last.generation, own, state);
        let earlier = self.generations.earlier(last.generation);
        let shown = self.shown.max(place_of(last));
        let end = End::None;
        let noted = Noted { database, last, state, own, resume, end, shown, earlier };
        let ended = self.replica.end_rows();
        self.check(ended)?;
        if let Some(what) = sums::difference(&floor, self.replica.sum()) {
            return Err(self.over(what));
        }
        let ended = self.replica.end_snapshot(&noted.note());
        self.check(ended)?;
        self.batches = Batches::after(state.1, pending);
        self.waiting.clear();
        if !self.batches.pending().is_empty() {
            self.waiting.push_back(Position::default());
        }
        (self.noted, self.shown) = (Some(noted), shown);
        self.sums = Sums::from(&header);
        self.reached.leap();
        self.reached.apply(last.generation, last.place);
        self.reached.reach(last.generation, own, state);
        Ok(())
    }

    fn block(&mut self, block: &Object) -> Result<(), Refusal> {
        if let Some(last) = self.again_until {
            return self.read_again(block, last);
        }
        let header = block.header;
        let catalog = Catalog::decode(block.catalog())?;
        let mut own = self.noted.map_or(0, |noted| noted.own);
        let mut is_anew = header.stamp_generation != self.state().0;
        let mut is_first = false;
        if let Some(Catalog {
            kind: CatalogKind::Whole { own: leaders, behind, is_anew: anew },
            ..
        }) = catalog
        {
            let has_others = |noted: Noted| noted.state != behind;
            let has_rows = self.noted.map_or(self.replica.is_torn(), has_others);
            is_first = behind == (0, 0) && has_rows;
            if !is_first && behind != self.state() {
                self.refused = Some(Refused::Elsewhere);
                let (is, wanted) = (self.state(), behind);
                return Err(
                    format!("the log goes on behind {wanted:?}, and the state is {is:?}").into()
                );
            }
            (own, is_anew) = (leaders, is_anew || anew);
            if is_first {
                self.reached.leap();
                self.generations.leap();
            } else if anew {
                self.reached.end();
                self.generations.end();
            }
        } else if self.noted.is_none() {
            return Err("the first object has no catalog".into());
        }
        let whole_tables = match &catalog {
            Some(Catalog { kind: CatalogKind::Whole { .. }, tables }) => Some(&tables[..]),
            _ => None,
        };
        if is_first {
            // The log begins with the empty state, and the rows here are of another one.
            let begun = self.replica.begin_snapshot(whole_tables.unwrap_or_default());
            self.check(begun)?;
            let noted = Noted {
                database: self.database,
                last: Link::NONE,
                state: (0, 0),
                own,
                resume: Position::default(),
                end: End::None,
                shown: self.shown,
                earlier: Default::default(),
            };
            let ended = self.replica.end_snapshot(&noted.note());
            self.check(ended)?;
            self.noted = Some(noted);
        }
        if is_anew {
            self.forget_waiting(0);
        }
        let waited = self.batches.pending().len();
        let batch = self.batches.add(header.cut, words_of(block))?;
        let waits = self.batches.pending().len();
        if waits == 0 {
            self.waiting.clear();
        } else if waits > waited || self.waiting.is_empty() {
            self.waiting.push_back(before(&header));
        }
        let last = block.link();
        let position = Position { last, is_end: false };
        let state = (header.stamp_generation, header.cut);
        self.generations.reach(last.generation, own, state);
        let noted = Noted {
            database: self.database,
            last,
            state,
            own,
            resume: self.resume(position),
            end: End::None,
            shown: self.shown.max(place_of(last)),
            earlier: self.generations.earlier(last.generation),
        };
        let records: Vec<_> = batch.records().collect();
        let applied = match (&whole_tables, &catalog) {
            (Some(tables), _) => self.replica.apply_with_all(tables, &records, &noted.note()),
            (None, catalog) => {
                let tables = catalog.as_ref().map_or(&[][..], |catalog| &catalog.tables);
                self.replica.apply(tables, &records, &noted.note())
            }
        };
        self.check(applied)?;
        (self.noted, self.shown) = (Some(noted), noted.shown);
        self.sums.note(block.link(), self.replica.sum());
        self.sums.meet(header.floor);
        self.reached.apply(header.generation, header.place);
        self.reached.reach(header.generation, own, noted.state);
        Ok(())
    }
}
