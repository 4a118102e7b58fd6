//! The process that writes the log of a generation.

#![forbid(unsafe_code)]

mod claim;
mod clean;
mod snapshot;

pub use claim::Claim;
#[cfg(feature = "engine")]
pub(crate) use claim::led;
pub use snapshot::{Restart, Snapshot};

use crate::access::{Access, Patience, Settled, now};
use crate::error::ReachError;
use crate::name::{NUMBER_MAX, Name};
use crate::object::{CONTENT_BYTES_MAX, FloorNumber, Header, Kind, Link};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A position in a log: the last object of which all is known, and whether it is an end, behind
/// which the log goes on in the next generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// The last object; [`Link::NONE`] before the first one.
    pub last: Link,
    /// Whether it ends its generation.
    pub is_end: bool,
}

impl Position {
    pub(crate) fn behind_block(last: Link) -> Position {
        Position { last, is_end: false }
    }

    /// Returns the latest generation that is known to be claimed, or 0: behind an end is a
    /// generation of the process that has created it, or of an earlier one.
    pub(crate) fn claimed(self) -> u64 {
        self.last.generation + u64::from(self.is_end)
    }
}

/// What a block contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block<'a> {
    /// The cut that the block closes: all commits with stamps up to it are in this block or before.
    pub cut: u64,
    /// The generation of the local log to which the cut and the stamps belong.
    pub stamp_generation: u64,
    /// What has changed in the catalog since the block before.
    pub catalog: &'a [u8],
    /// Commit records. A block without any says that the leader is alive.
    pub payload: &'a [u8],
}

/// A block that has its place in the log and was not sent, or not with success. If it is dropped,
/// no later block is ever acknowledged.
#[derive(Debug)]
#[must_use = "no later block is acknowledged unless it is sent"]
pub struct Offer {
    link: Link,
    bytes: Vec<u8>,
}

impl Offer {
    /// Returns the place of the block in the log of its generation, from 1.
    pub fn place(&self) -> u64 {
        self.link.place
    }

    /// Returns the position behind the block.
    #[cfg(feature = "engine")]
    pub(crate) fn position(&self) -> Position {
        Position::behind_block(self.link)
    }
}

/// The leader of a generation: the only process that writes blocks and snapshots of that
/// generation.
///
/// Blocks get their places one after another by [`offer`](Leader::offer), which does not wait for
/// the place. [`send`](Leader::send) does, and may be called from several threads at once, each
/// with an offer of its own, in any order. A block is acknowledged when all blocks up to it are
/// known to be there. A leader that was superseded can still send, and acknowledges nothing.
#[derive(Debug)]
pub struct Leader {
    access: Access,
    /// The number of the claim.
    number: u64,
    generation: u64,
    /// Held while the state changes, never during a call of the place.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The last offered block, or what was there before the first.
    last: Link,
    /// The largest stamp generation, and the largest cut within it.
    cut: (u64, u64),
    /// The number of offered blocks.
    offered: u64,
    /// All blocks up to this place are there.
    acknowledged: u64,
    /// Behind the last of them, or behind what was there before the first.
    position: Position,
    /// Later blocks that are there.
    there: BTreeSet<u64>,
    /// The CRC and the cut of each block from the newest floor's on.
    blocks: BTreeMap<u64, Written>,
    /// The newest floor of all generations.
    floor: FloorNumber,
    /// The leader's own floors, oldest first, and when they were made.
    floors: Vec<OwnFloor>,
    /// The place up to which this generation's blocks are deleted, and whether those of earlier
    /// generations are.
    deleted: (u64, bool),
    /// What is being written beside the blocks.
    writing: Writing,
    /// The claimed generation that has ended this one.
    superseded: Option<u64>,
}

/// What is being written beside the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    Nothing,
    Snapshot,
    /// The parts of a restart, which has the next place in the log.
    Restart,
}

#[derive(Debug, Clone, Copy)]
struct Written {
    crc: u32,
    cut: u64,
    stamp_generation: u64,
}

#[derive(Debug, Clone, Copy)]
struct OwnFloor {
    /// The place of the last block that the snapshot contains.
    place: u64,
    made: Instant,
}

impl Leader {
    fn new(access: Access, number: u64, generation: u64, last: Link, floor: FloorNumber) -> Leader {
        let state = State {
            last,
            cut: (0, 0),
            offered: 0,
            acknowledged: 0,
            position: Position { last, is_end: last != Link::NONE },
            there: BTreeSet::new(),
            blocks: BTreeMap::new(),
            floor,
            floors: Vec::new(),
            deleted: (0, false),
            writing: Writing::Nothing,
            superseded: None,
        };
        Leader { access, number, generation, state: Mutex::new(state) }
    }

    /// Returns the generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the number of the claim.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Sets how often calls without an answer are repeated from now on.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Leader {
        Leader { access: Access { patience, ..self.access }, ..self }
    }

    /// Returns the position up to which the log is known to be there: behind the last acknowledged
    /// block, or behind what was there before the first one.
    pub fn position(&self) -> Position {
        self.state().position
    }

    /// Returns the place up to which all blocks of this generation are acknowledged; 0 before the
    /// first.
    pub fn acknowledged(&self) -> u64 {
        self.state().acknowledged
    }

    /// Returns the number of blocks that have a place in the log.
    pub fn offered(&self) -> u64 {
        self.state().offered
    }

    /// Gives a block the next place in the log. The caller sends it.
    ///
    /// # Errors
    /// * [`ReachError::Superseded`].
    /// * [`ReachError::Misuse`]: the block is too large, or its cut or stamp generation is smaller
    ///   than that of the block before; or a restart has the next place.
    pub fn offer(&self, block: &Block<'_>) -> Result<Offer, ReachError> {
        let content = block.catalog.len() + block.payload.len();
        if content > CONTENT_BYTES_MAX {
            let what = format!("a block has {content} bytes; at most {CONTENT_BYTES_MAX} fit");
            return Err(ReachError::Misuse(what));
        }
        let mut state = self.state();
        self.check(&state)?;
        if state.writing == Writing::Restart {
            return Err(ReachError::Misuse("a restart is being written; create it first".into()));
        }
        let cut = (block.stamp_generation, block.cut);
        if cut < state.cut {
            let (generation, before) = state.cut;
            return Err(ReachError::Misuse(format!(
                "cut {} of stamp generation {} comes behind cut {before} of {generation}",
                block.cut, block.stamp_generation
            )));
        }
        let Block { cut, stamp_generation, .. } = *block;
        let header = Header {
            cut,
            stamp_generation,
            number: state.offered - state.acknowledged,
            time: now(),
            ..Header::new(Kind::Block, self.access.database, self.generation, 0)
        };
        self.offer_next(&mut state, header, block.catalog, block.payload)
    }

    /// Gives an object the next place in the log.
    fn offer_next(
        &self,
        state: &mut State,
        header: Header,
        catalog: &[u8],
        payload: &[u8],
    ) -> Result<Offer, ReachError> {
        let place = state.offered + 1;
        if place > NUMBER_MAX {
            return Err(ReachError::Misuse("the log of a generation has no room left".into()));
        }
        let header = Header { place, before: state.last, floor: state.floor, ..header };
        let bytes = header.encode(catalog, payload);
        let crc = crc_of(&bytes);
        let Header { cut, stamp_generation, .. } = header;
        state.cut = (stamp_generation, cut);
        state.offered = place;
        state.last = Link { generation: self.generation, place, crc };
        state.blocks.insert(place, Written { crc, cut, stamp_generation });
        Ok(Offer { link: state.last, bytes })
    }

    /// Returns when the place answers.
    ///
    /// # Errors
    /// [`ReachError::Place`] if it does not; and others if the claim cannot be read.
    #[cfg(feature = "engine")]
    pub(crate) fn ask(&self) -> Result<(), ReachError> {
        self.access.read(Name::Claim(self.generation)).map(drop)
    }

    /// Creates the object of a block. Returns the place up to which all blocks are acknowledged,
    /// which may be smaller than that of this one, if earlier ones are under way, or larger.
    ///
    /// # Errors
    /// * [`ReachError::Superseded`]: a later leader has ended the generation before this block.
    /// * [`ReachError::Place`]: it is not known whether the block is there. The same offer may be
    ///   sent again.
    /// * [`ReachError::Damaged`]: another object has taken the place.
    pub fn send(&self, offer: &Offer) -> Result<u64, ReachError> {
        self.check(&self.state())?;
        let name = Name::Log(self.generation, offer.place());
        match self.access.create(name, &offer.bytes)? {
            Settled::Own => Ok(self.arrived(offer.place())),
            Settled::Other(found) if found.header.kind == Kind::End => {
                Err(self.supersede(found.header.number))
            }
            Settled::Other(_) => {
                Err(ReachError::damaged(name, "another process has written to this generation"))
            }
        }
    }

    /// Notes that a block is there.
    fn arrived(&self, place: u64) -> u64 {
        let mut state = self.state();
        state.there.insert(place);
        while state.there.first() == Some(&(state.acknowledged + 1)) {
            state.there.pop_first();
            state.acknowledged += 1;
            let place = state.acknowledged;
            // Later snapshots forget the block.
            if let Some(written) = state.blocks.get(&place) {
                let last = Link { generation: self.generation, place, crc: written.crc };
                state.position = Position::behind_block(last);
            }
        }
        state.acknowledged
    }

    /// Notes that a later leader has ended this generation.
    fn supersede(&self, by: u64) -> ReachError {
        let mut state = self.state();
        state.superseded = state.superseded.max(Some(by));
        ReachError::Superseded { generation: self.generation, by }
    }

    fn check(&self, state: &State) -> Result<(), ReachError> {
        match state.superseded {
            Some(by) => Err(ReachError::Superseded { generation: self.generation, by }),
            None => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the CRC with which the bytes of an object end.
fn crc_of(bytes: &[u8]) -> u32 {
    bytes.last_chunk().map_or(0, |crc| u32::from_le_bytes(*crc))
}
