//! Snapshots, and the floors that say that one is complete.

#![forbid(unsafe_code)]

use super::{Leader, OwnFloor, Written};
use crate::access::{Settled, now};
use crate::error::ReachError;
use crate::name::{Name, PART_MAX};
use crate::object::{CONTENT_BYTES_MAX, FloorNumber, Header, Kind, Link};
use std::time::Instant;

/// A snapshot that is being written: the state after a block of the leader's generation.
///
/// Nothing reads it before [`finish`](Snapshot::finish). If it is dropped before, what was written
/// stays until a later floor covers it, and no other snapshot of the same block can be written.
#[derive(Debug)]
pub struct Snapshot<'a> {
    leader: &'a Leader,
    /// The last block that the snapshot contains.
    at: Link,
    written: Written,
    parts: u32,
    /// What the next part names: the part before, or the block.
    last: Link,
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
        let mut state = self.state();
        self.check(&state)?;
        if state.is_writing {
            return Err(ReachError::Misuse("a snapshot is being written; finish it first".into()));
        }
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
        state.is_writing = true;
        let at = Link { generation: self.generation, place, crc: written.crc };
        Ok(Snapshot { leader: self, at, written, parts: 0, last: at })
    }
}

impl Snapshot<'_> {
    fn header(&self, kind: Kind, place: u64) -> Header {
        let Written { cut, stamp_generation, .. } = self.written;
        let database = self.leader.access.database;
        Header {
            cut,
            stamp_generation,
            time: now(),
            ..Header::new(kind, database, self.at.generation, place)
        }
    }

    /// Writes the next part, with the whole catalog or a part of it.
    ///
    /// # Errors
    /// * [`ReachError::Misuse`]: the part is too large, or there are too many parts.
    /// * [`ReachError::Place`]: it is not known whether the part is there. The snapshot cannot go
    ///   on; a later block may have one.
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
        if self.parts == 0 {
            return Err(ReachError::Misuse("a snapshot needs a part, which may be empty".into()));
        }
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
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        self.leader.state().is_writing = false;
    }
}
