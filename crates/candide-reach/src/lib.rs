//! A log in a place that outlives the machine: which process may write it, how others follow, and
//! how one of them takes over.
//!
//! A [`Place`] is trusted for little: of several creations of one name one succeeds, and what
//! exists can be read. A directory on another disk is one ([`Directory`]); object stores are, too.
//! On it, [`Leader`] and [`Follower`] run the protocol that
//! `docs/decisions/2026-11-28-reach.md` describes. Its consequence: at any time at most one
//! process can acknowledge blocks, and what it acknowledges is in the log of all later leaders,
//! whatever crashes, pauses or answers late, and whatever clocks show.
//!
//! The protocol knows no engine: the catalog, commit records and rows are bytes to it. With the
//! cargo feature `engine`, which is on by default, [`Replicate`] opens a database of the crate
//! `candide` whose log is in a place, too, and a `Standby` applies it to another one.
//!
//! ```
//! use candide_reach::object::Object;
//! use candide_reach::{Block, Claim, Directory, Follower, Leader, Patience, Position, Progress};
//! use candide_reach::{Place, Receiver, Refusal, random_number};
//! use std::sync::Arc;
//!
//! /// The state of this example: all payloads, one behind the other.
//! #[derive(Default)]
//! struct Text(Vec<u8>);
//!
//! impl Receiver for Text {
//!     fn begin(&mut self, _: &Object) -> Result<(), Refusal> {
//!         self.0.clear();
//!         Ok(())
//!     }
//!     fn part(&mut self, part: &Object) -> Result<(), Refusal> {
//!         self.0.extend_from_slice(part.payload());
//!         Ok(())
//!     }
//!     fn complete(&mut self) -> Result<(), Refusal> {
//!         Ok(())
//!     }
//!     fn block(&mut self, block: &Object) -> Result<(), Refusal> {
//!         self.0.extend_from_slice(block.payload());
//!         Ok(())
//!     }
//! }
//!
//! # let path = std::env::temp_dir().join(format!("candide-reach-lib-{}", std::process::id()));
//! let place: Arc<dyn Place> = Arc::new(Directory::new(&path)?);
//! let database = [7; 16];
//! let mut claim = Claim {
//!     database,
//!     number: random_number(),
//!     earlier: &[],
//!     against_others: false,
//!     position: None,
//!     patience: Patience::default(),
//! };
//! let mut state = Text::default();
//! let leader = Leader::claim(Arc::clone(&place), &claim, &mut state)?;
//! let hello = leader.offer(&Block { cut: 1, stamp_generation: 1, catalog: b"", payload: b"hello" })?;
//! assert_eq!(leader.send(&hello)?, 1);
//!
//! let mut copy = Text::default();
//! let patience = Patience::default();
//! let mut follower = Follower::new(Arc::clone(&place), database, Position::default(), patience);
//! assert_eq!(follower.step(&mut copy)?, Progress::Block);
//! assert_eq!(copy.0, b"hello");
//!
//! // The follower is promoted. What the first leader sends now is not acknowledged.
//! claim.number = random_number();
//! claim.against_others = true;
//! claim.position = Some(follower.position());
//! let next = Leader::claim(place, &claim, &mut copy)?;
//! assert_eq!(next.generation(), 2);
//! let late = leader.offer(&Block { cut: 2, stamp_generation: 1, catalog: b"", payload: b"late" })?;
//! assert!(leader.send(&late).is_err());
//! # std::fs::remove_dir_all(path).unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! | module | what it has |
//! |---|---|
//! | `standby` | a database that follows, with the cargo feature `engine` |
//! | `primary` | a database whose log is in a place, with the cargo feature `engine` |
//! | [`tools`] | looking at a place, and checking all that is in it |
//! | `follower` | reading the log as it grows |
//! | `leader` | claiming a generation and taking over; blocks, snapshots, floors, deletion |
//! | `receiver` | what takes in blocks and snapshots |
//! | `access` | reading and creating objects of one database until their fate is known |
//! | `probe` | whether a place keeps its first promise |
//! | [`sim`] | a place in memory, for tests, with all faults that a place may have |
//! | `directory` | a folder as a place |
//! | `error` | what can go wrong |
//! | `place`, `name` | what a place is, and the names of objects |
//! | [`object`], `random` | the bytes of objects; random numbers |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

// Layers, lowest first: random, object, name, place, error, directory, sim, probe, access,
// receiver, leader, follower, tools, primary, standby.
mod access;
mod directory;
mod error;
mod follower;
mod leader;
mod name;
pub mod object;
mod place;
#[cfg(feature = "engine")]
mod primary;
mod probe;
mod random;
mod receiver;
pub mod sim;
#[cfg(feature = "engine")]
mod standby;
pub mod tools;

pub use access::Patience;
pub use directory::Directory;
pub use error::ReachError;
pub use follower::{Follower, Progress};
pub use leader::{Block, Claim, Leader, Offer, Position, Restart, Snapshot};
pub use name::{NAME_BYTES_MAX, NUMBER_MAX, Name, PART_MAX, check_name};
pub use place::{Created, LIST_MAX, Place, PlaceError};
#[cfg(feature = "engine")]
pub use primary::{Replicate, ReplicateOptions};
pub use probe::probe;
pub use random::number as random_number;
pub use receiver::{Receiver, Refusal};
#[cfg(feature = "engine")]
pub use standby::{
    Promoted, Restored, Standby, StandbyError, StandbyOptions, StandbyProgress, WaitError,
    belongs_to, restore,
};
