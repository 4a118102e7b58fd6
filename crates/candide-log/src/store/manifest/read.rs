//! Reading `MANIFEST`, or its copy when it is damaged. `docs/file-format.md` defines which of the
//! two is in force, and why no crash changes that.

use crate::checkpoint::read::{PartReader, parts};
use crate::disk::{Disk, DiskFile};
use crate::error::OpenError;
use crate::format::manifest::{Front, HEADER_BYTES, Manifest, check_length};
use crate::format::{Fault, Malformed};
use crate::log::segments::{self, damaged};
use crate::names::{MANIFEST, MANIFEST_COPY};
use crate::store::files::Files;
use std::io;

/// The contents in force.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) manifest: Manifest,
    /// The damage of the file that was not needed. The next opening writes both files anew.
    pub(crate) damage: Option<OpenError>,
}

/// The state of one of the two files.
enum State {
    Missing,
    /// The readable front of the file, and the file's bytes.
    Read(Front, Vec<u8>),
    /// The reason why nothing can be read.
    Damaged(OpenError),
}

/// Reads `MANIFEST` and its copy. `None` if both files are missing. `files` are the files of the
/// directory.
///
/// # Errors
/// `MANIFEST` is damaged, and the copy cannot take its place: it is missing or damaged, too, or a
/// file that it names is missing.
pub(crate) fn read(disk: &dyn Disk, files: &Files) -> Result<Option<Found>, OpenError> {
    let first = State::read(disk, files, MANIFEST)?;
    let mut copy = State::read(disk, files, MANIFEST_COPY)?;
    let damage = match first {
        State::Missing if matches!(copy, State::Missing) => return Ok(None),
        State::Missing => OpenError::corrupt(MANIFEST, 0, "the file is missing"),
        State::Damaged(error @ OpenError::Format { .. }) => return Err(error),
        State::Damaged(error) => error,
        State::Read(front, bytes) => match what_is_lost(&front, &bytes, &copy) {
            Some(error) => {
                copy = copy.unless_behind(&front, &bytes);
                error
            }
            None => {
                let damage = copy.damage(&front.manifest);
                return Ok(Some(Found { manifest: front.manifest, damage }));
            }
        },
    };
    take_copy(disk, copy, damage).map(Some)
}

/// Returns the damage of `MANIFEST`, or of the bytes behind its front, if an entry in force may be
/// lost.
fn what_is_lost(front: &Front, bytes: &[u8], copy: &State) -> Option<OpenError> {
    let end = &bytes[..front.bytes];
    match (&front.tail, copy) {
        (None, State::Read(copy, longer)) if longer[..copy.bytes].starts_with(end) => {
            let what = "the file ends, and its copy has more entries";
            let is_longer = copy.bytes > front.bytes;
            is_longer.then(|| OpenError::corrupt(MANIFEST, front.bytes as u64, what))
        }
        (None, State::Read(copy, _)) if is_older(&front.manifest, &copy.manifest) => {
            let what = "the file is older than its copy";
            Some(OpenError::corrupt(MANIFEST, 0, what))
        }
        (None, _) => None,
        // An entry is appended to the copy when it is durable in MANIFEST. So this entry was not
        // durable, and is torn.
        (Some(_), State::Read(_, same)) if same == end => None,
        (Some(tail), _) => Some(damaged(MANIFEST, tail.clone())),
    }
}

/// Returns whether one of the two files is older than a crash can leave it: each change is made in
/// both files before the next change.
fn is_older(one: &Manifest, other: &Manifest) -> bool {
    one.uuid == other.uuid && other.sequence.saturating_sub(one.sequence) > 1
}

/// Returns the contents of the copy, in the place of a `MANIFEST` with this damage.
fn take_copy(disk: &dyn Disk, copy: State, damage: OpenError) -> Result<Found, OpenError> {
    let refused = match copy {
        State::Missing => None,
        State::Damaged(error @ OpenError::Format { .. }) => return Err(error),
        State::Damaged(error) => Some(error),
        State::Read(Front { tail: Some(tail), .. }, _) => Some(damaged(MANIFEST_COPY, tail)),
        State::Read(Front { manifest, .. }, _) => match check_named(disk, &manifest) {
            Err(error) => Some(error),
            Ok(()) => return Ok(Found { manifest, damage: Some(damage) }),
        },
    };
    Err(match (damage, refused) {
        (
            OpenError::Corrupt { file, offset, what },
            Some(OpenError::Corrupt { file: other, offset: at, what: why }),
        ) => {
            let named = if other == MANIFEST_COPY { "" } else { ", which the copy names" };
            let what = format!("{what}; and {other}{named}, is damaged at byte {at}: {why}");
            OpenError::Corrupt { file, offset, what }
        }
        (damage, _) => damage,
    })
}

/// Checks that every file that a copy names exists.
fn check_named(disk: &dyn Disk, manifest: &Manifest) -> Result<(), OpenError> {
    for part in parts(manifest) {
        PartReader::open(disk, manifest, part)?;
    }
    let (first, last) = (manifest.first_segment, manifest.last_segment);
    segments::open_all(disk, Some(&manifest.uuid), first, last).map(|_| ())
}

impl State {
    /// Reads a file.
    fn read(disk: &dyn Disk, files: &Files, name: &str) -> Result<State, OpenError> {
        let file = match disk.open_to_read(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Missing),
            opened => opened.map_err(OpenError::io(name))?,
        };
        let length = file.len().map_err(OpenError::io(name))?;
        let read = match contents(&*file, length) {
            Ok(bytes) => bytes.and_then(|bytes| Ok(State::Read(Front::decode(&bytes)?, bytes))),
            // Bytes that the disk cannot read count as damaged.
            Err(error) => return Ok(State::Damaged(OpenError::io(name)(error))),
        };
        Ok(read.unwrap_or_else(|error| {
            State::Damaged(match error.fault {
                Fault::Magic if files.of_database().is_none() => OpenError::NotADatabase {
                    found: format!("a file {name} that no database has written"),
                },
                _ => damaged(name, error),
            })
        }))
    }

    /// Returns the copy, as damaged if it lacks changes of the front of `MANIFEST`, which has these
    /// bytes and a tail. No crash causes such a copy, since each change is in both files before the
    /// next change.
    fn unless_behind(self, first: &Front, bytes: &[u8]) -> State {
        match self {
            State::Read(copy, has)
                if is_older(&copy.manifest, &first.manifest)
                    || has.len() < first.bytes && bytes.starts_with(&has) =>
            {
                let what = "the file ends, and MANIFEST has more entries";
                State::Damaged(OpenError::corrupt(MANIFEST_COPY, has.len() as u64, what))
            }
            other => other,
        }
    }

    /// Returns the damage of a copy that is not needed, since `first` is in force.
    fn damage(self, first: &Manifest) -> Option<OpenError> {
        match self {
            State::Missing => None,
            State::Damaged(error) => Some(error),
            State::Read(Front { tail: Some(tail), .. }, _) => Some(damaged(MANIFEST_COPY, tail)),
            State::Read(Front { manifest, .. }, _) => is_older(&manifest, first)
                .then(|| OpenError::corrupt(MANIFEST_COPY, 0, "the file is older than MANIFEST")),
        }
    }
}

/// Reads a file of `length` bytes, unless its first bytes state a smaller length.
fn contents(file: &dyn DiskFile, length: u64) -> io::Result<Result<Vec<u8>, Malformed>> {
    let mut bytes = vec![0; length.min(HEADER_BYTES as u64) as usize];
    file.read_at(0, &mut bytes)?;
    if let Err(error) = check_length(&bytes, length) {
        return Ok(Err(error));
    }
    bytes.resize(length as usize, 0);
    file.read_at(0, &mut bytes)?;
    Ok(Ok(bytes))
}
