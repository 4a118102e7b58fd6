//! Tools for files of databases that are not in use. Tools change nothing in the directory that
//! they read, and need no right to write there.

mod backup;
mod inspect;
mod repair;
mod rows;
mod stats;
mod verify;

pub use backup::backup;
pub use inspect::{Item, inspect};
pub use repair::{LostBlock, Repaired, Until, repair};
pub use rows::{RowReader, rows};
pub use stats::{GroupStats, Stats, TableStats, stats};
pub use verify::{Verified, verify};

use crate::disk::Disk;
use crate::error::OpenError;
use crate::format::manifest::Manifest;
use crate::log::replay::{Replay, Step};
use crate::log::segments::Segment;
use crate::names::MANIFEST;
use crate::store::files::Files;
use crate::store::manifest::{self, Found};
use crate::store::open;
use crate::store::recover;
use std::fmt::Debug;

/// A database that a tool looks at, locked.
struct Source<'a> {
    disk: &'a dyn Disk,
    manifest: Manifest,
    /// The damage of one of the two files of MANIFEST, if nothing was needed from that file.
    manifest_damage: Option<OpenError>,
    files: Files,
    _lock: Box<dyn Send + Sync + Debug>,
}

impl<'a> Source<'a> {
    /// Locks the directory, and reads MANIFEST.
    fn open(disk: &'a dyn Disk) -> Result<Source<'a>, OpenError> {
        let lock = open::lock(disk)?;
        let files = Files::list(disk)?;
        let Some(Found { manifest, damage }) = manifest::read(disk, &files)? else {
            return Err(match files.of_database() {
                None => OpenError::NotADatabase { found: format!("no file {MANIFEST}") },
                Some(there) => {
                    let what = format!("the file is missing, although there is {}", there.name());
                    OpenError::corrupt(MANIFEST, 0, what)
                }
            });
        };
        Ok(Source { disk, manifest, manifest_damage: damage, files, _lock: lock })
    }

    /// Returns the number of the last segment that there is, or that should be.
    fn last_segment(&self) -> u64 {
        let last = self.files.last_segment().max(self.manifest.last_segment);
        last.max(self.manifest.first_segment)
    }

    /// Opens the segments of the log up to the first damaged segment. Returns the damage, too.
    fn segments(&self) -> (Vec<Segment<'a>>, Option<OpenError>) {
        let first = self.manifest.first_segment;
        let last = self.last_segment();
        for end in (first..=last).rev() {
            match recover::segments(self.disk, &self.manifest, end) {
                Ok(segments) => {
                    let damage = (end < last)
                        .then(|| recover::segments(self.disk, &self.manifest, end + 1).err());
                    return (segments, damage.flatten());
                }
                Err(_) if end > first => {}
                Err(error) => return (Vec::new(), Some(error)),
            }
        }
        (Vec::new(), None)
    }

    /// Replays the log up to the first damage, or up to a chosen cut.
    ///
    /// # Errors
    /// A file cannot be read.
    fn replay(&self, pending: Vec<u64>, until: Option<Until>) -> Result<Stretch<'a>, OpenError> {
        let (segments, damage) = self.segments();
        let mut stretch = Stretch { steps: Vec::new(), replay: None, damage };
        if segments.is_empty() {
            return Ok(stretch);
        }
        let until = until.map(|until| (until.generation, until.cut));
        let result = recover::replay(segments, &self.manifest, pending, None).and_then(|replay| {
            let replay = stretch.replay.insert(replay);
            while let Some(step) = replay.next_until(until)? {
                stretch.steps.push(step);
            }
            Ok(())
        });
        match result {
            Err(error @ OpenError::Corrupt { .. }) => stretch.damage = Some(error),
            other => other?,
        }
        Ok(stretch)
    }
}

/// The log up to a place.
struct Stretch<'a> {
    steps: Vec<Step>,
    /// `None` if the beginning of MANIFEST cannot be read.
    replay: Option<Replay<'a>>,
    /// The damage behind it.
    damage: Option<OpenError>,
}
