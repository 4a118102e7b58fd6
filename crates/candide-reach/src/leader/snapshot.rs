//! Snapshots, the floors that say that one is complete, and restarts.

#![forbid(unsafe_code)]

use super::{Leader, Offer, OwnFloor, State, Writing, Written};
use crate::access::{Settled, now};
use crate::error::ReachError;
use crate::name::{NUMBER_MAX, Name, PART_MAX};
use crate::object::{CONTENT_BYTES_MAX, FloorNumber, Header, Kind, Link};
use std::time::Instant;

/// A snapshot that is being written: the state after a block of the leader's generation.
///
/// Nothing reads it before [`finish`](Snapshot::finish). If it is dropped before, what was written
/// stays until a later floor covers it, and no other snapshot of the same block can be written.
#[derive(Debug)]
pub struct Snapshot<'a> {
    leader: &'a Leader,
    /// The last object that the snapshot contains.
    at: Link,
    written: Written,
    parts: u32,
    /// What the next part names: the part before, or the object.
    last: Link,
    /// The time of all parts, so that a part which is tried again has the same bytes.
    time: u64,
}

/// A restart that is being written: a snapshot that stands for all of the log before it, although
/// the log lacks a stretch. A reader goes on with it wherever it was.
///
/// Nothing reads it before [`create`](Restart::create). If it is dropped before, the next block
/// takes its place.
#[derive(Debug)]
pub struct Restart<'a> {
    snapshot: Snapshot<'a>,
    /// The object of the log, once it has its place.
    offer: Option<Offer>,
}

impl Leader {
    /// Begins a snapshot of the state after block `place` of this generation. One is written at a
    /// time.
    ///
    /// # Errors
    /// * [`ReachError::Misuse`]: the block is not acknowledged; or it is not behind the block of
    ///   the snapshot before; or a snapshot is being written.
    /// * [`ReachError::Superseded`].
    pub fn snapshot(&self, place: u64) -> Result<Snapshot<'_>, ReachError> {
        let mut state = self.begin_writing()?;
        if place > state.acknowledged {
            return Err(ReachError::Misuse(format!(
                "block {place} is not acknowledged yet; {} is",
                state.acknowledged
            )));
        }
        // What is not behind the last snapshot is not in the list any more.
        let Some(written) = state.blocks.get(&place).copied() else {
            return Err(ReachError::Misuse(format!(
                "block {place} is not behind the one of the snapshot before"
            )));
        };
        state.blocks = state.blocks.split_off(&(place + 1));
        state.writing = Writing::Snapshot;
        let at = Link { generation: self.generation, place, crc: written.crc };
        Ok(self.parts_of(at, written))
    }

    /// Begins a restart, at the next place of the log, with the state up to a cut of a stamp
    /// generation. No block can be offered before it is created or dropped.
    ///
    /// # Errors
    /// * [`ReachError::Misuse`]: a block is not acknowledged yet, or a snapshot is being written.
    /// * [`ReachError::Superseded`].
    pub fn restart(&self, stamp_generation: u64, cut: u64) -> Result<Restart<'_>, ReachError> {
        let mut state = self.begin_writing()?;
        let State { offered, acknowledged, .. } = *state;
        if offered > acknowledged || offered >= NUMBER_MAX {
            let what = format!("{offered} blocks are offered, and {acknowledged} acknowledged");
            return Err(ReachError::Misuse(format!("{what}; a restart comes behind all")));
        }
        state.writing = Writing::Restart;
        let at = Link { generation: self.generation, place: offered + 1, crc: 0 };
        let written = Written { crc: 0, cut, stamp_generation };
        Ok(Restart { snapshot: self.parts_of(at, written), offer: None })
    }

    fn begin_writing(&self) -> Result<std::sync::MutexGuard<'_, State>, ReachError> {
        let state = self.state();
        self.check(&state)?;
        match state.writing {
            Writing::Nothing => Ok(state),
            _ => Err(ReachError::Misuse("a snapshot is being written; finish it first".into())),
        }
    }

    fn parts_of(&self, at: Link, written: Written) -> Snapshot<'_> {
        Snapshot { leader: self, at, written, parts: 0, last: at, time: now() }
    }
}

impl Snapshot<'_> {
    fn header(&self, kind: Kind, place: u64) -> Header {
        let Written { cut, stamp_generation, .. } = self.written;
        let database = self.leader.access.database;
        Header {
            cut,
            stamp_generation,
            time: self.time,
            ..Header::new(kind, database, self.at.generation, place)
        }
    }

    /// Writes the next part, with the whole catalog or a part of it.
    ///
    /// # Errors
    /// * [`ReachError::Misuse`]: the part is too large, or there are too many parts.
    /// * [`ReachError::Place`]: it is not known whether the part is there. The same part may be
    ///   written again.
    /// * [`ReachError::Damaged`]: another object has taken its place.
    pub fn part(&mut self, catalog: &[u8], payload: &[u8]) -> Result<(), ReachError> {
        let content = catalog.len() + payload.len();
        if content > CONTENT_BYTES_MAX || self.parts > PART_MAX {
            let what = format!("part {} of a snapshot has {content} bytes", self.parts);
            return Err(ReachError::Misuse(format!(
                "{what}; {PART_MAX} parts of {CONTENT_BYTES_MAX} bytes are allowed"
            )));
        }
        let place = self.at.place;
        let header =
            Header { part: self.parts, before: self.last, ..self.header(Kind::Part, place) };
        let bytes = header.encode(catalog, payload);
        let name = Name::Snapshot(self.at.generation, place, self.parts);
        match self.leader.access.create(name, &bytes)? {
            Settled::Own => {
                self.last = Link { crc: super::crc_of(&bytes), ..self.at };
                self.parts += 1;
                Ok(())
            }
            Settled::Other(_) => Err(ReachError::damaged(name, "another snapshot has this part")),
        }
    }

    /// Says that the snapshot is complete, by the next floor of the generation. From then on, what
    /// the snapshot contains need not be in the log. `payload` is for the reader.
    ///
    /// # Errors
    /// * [`ReachError::Misuse`]: the snapshot has no part.
    /// * [`ReachError::Superseded`]: a later leader has sealed the floors.
    /// * [`ReachError::Place`]: it is not known whether the floor is there. If it is, readers may
    ///   begin with it. [`Leader::clean`] does not go by it.
    pub fn finish(self, payload: &[u8]) -> Result<(), ReachError> {
        self.check_parts()?;
        let leader = self.leader;
        loop {
            // A floor of this leader may be there whose answer was lost.
            let floors = leader.access.floors(self.at.generation)?;
            if let Some(seal) = floors.seal {
                return Err(leader.supersede(seal.header.number));
            }
            let number = floors.next;
            let header = Header {
                part: self.parts,
                before: self.at,
                number: self.last.crc.into(),
                ..self.header(Kind::Floor, number)
            };
            let name = Name::Floor(self.at.generation, number);
            match leader.access.create(name, &header.encode(&[], payload))? {
                Settled::Own => {
                    let mut state = leader.state();
                    state.floor = FloorNumber { generation: self.at.generation, number };
                    let made = Instant::now();
                    state.floors.push(OwnFloor { place: self.at.place, made });
                    return Ok(());
                }
                Settled::Other(found) if found.header.kind == Kind::Seal => {
                    return Err(leader.supersede(found.header.number));
                }
                Settled::Other(_) => {}
            }
        }
    }

    fn check_parts(&self) -> Result<(), ReachError> {
        match self.parts {
            0 => Err(ReachError::Misuse("a snapshot needs a part, which may be empty".into())),
            _ => Ok(()),
        }
    }
}

impl Restart<'_> {
    /// Writes the next part, as [`Snapshot::part`] does.
    ///
    /// # Errors
    /// As [`Snapshot::part`]; and [`ReachError::Misuse`] if the restart has been created.
    pub fn part(&mut self, catalog: &[u8], payload: &[u8]) -> Result<(), ReachError> {
        match self.offer {
            Some(_) => Err(ReachError::Misuse("the restart has been created".into())),
            None => self.snapshot.part(catalog, payload),
        }
    }

    /// Creates the object of the log, behind all parts. Returns the place up to which the log is
    /// acknowledged.
    ///
    /// # Errors
    /// [`ReachError::Misuse`] if there is no part, and those of [`Leader::send`]. After
    /// [`ReachError::Place`] the call may be repeated; without that, no later block is ever
    /// acknowledged.
    pub fn create(&mut self) -> Result<u64, ReachError> {
        self.snapshot.check_parts()?;
        let leader = self.snapshot.leader;
        if self.offer.is_none() {
            let mut state = leader.state();
            leader.check(&state)?;
            let header = Header {
                part: self.snapshot.parts,
                number: self.snapshot.last.crc.into(),
                ..self.snapshot.header(Kind::Restart, 0)
            };
            let offer = leader.offer_next(&mut state, header, &[], &[])?;
            state.writing = Writing::Snapshot;
            self.snapshot.at = state.last;
            self.offer = Some(offer);
        }
        let acknowledged = leader.send(self.offer.as_ref().expect("it has its place"))?;
        // Only later blocks can have snapshots of their own.
        let mut state = leader.state();
        state.blocks = state.blocks.split_off(&(self.snapshot.at.place + 1));
        Ok(acknowledged)
    }

    /// Says by a floor, as [`Snapshot::finish`] does, that readers can begin with the restart.
    ///
    /// # Errors
    /// As [`Snapshot::finish`]; and [`ReachError::Misuse`] if the restart is not acknowledged.
    pub fn finish(self) -> Result<(), ReachError> {
        let Snapshot { leader, at, .. } = self.snapshot;
        if self.offer.is_none() || leader.acknowledged() < at.place {
            return Err(ReachError::Misuse("the restart has not been created".into()));
        }
        self.snapshot.finish(&[])
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.leader.state().writing = Writing::Nothing;
    }
}
