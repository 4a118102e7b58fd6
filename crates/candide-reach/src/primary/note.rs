//! What the primary notes in its directory: the numbers of its claims, and up to where the place
//! has its log.

#![forbid(unsafe_code)]

use crate::leader::Position;
use crate::object::Link;
use candide_log::OpenError;
use candide_log::format::{Fault, Malformed, Uuid};
use candide_log::store::{LogPlace, Unopened};

const MAGIC: &[u8; 8] = b"candiREM";
const VERSION: u64 = 1;
/// What is there instead of a position if the directory follows.
const FOLLOWING: u64 = 2;
/// The most numbers of claims that a note has.
const NUMBERS_MAX: usize = 10_000;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Note {
    /// The database whose log the place has.
    pub(super) database: Uuid,
    /// The numbers with which the directory has claimed since it has last led, oldest first.
    pub(super) numbers: Vec<u64>,
    /// Up to where the place has the log; `None` if it is not known to have any.
    pub(super) known: Option<Known>,
    /// Whether the directory follows the database, and a promotion has not ended. Then nothing is
    /// known.
    pub(super) is_following: bool,
}

/// A position in the place and in the local log up to which both have the same records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Known {
    pub(super) position: Position,
    pub(super) local: LogPlace,
    /// The number of words of records behind `local` that the place has, too.
    pub(super) words: u64,
    /// The stamp generation and the cut of the last object.
    pub(super) cut: (u64, u64),
}

impl Note {
    /// Returns the note in a directory; `None` if there is none.
    pub(super) fn of(unopened: &Unopened<'_>) -> Result<Option<Note>, OpenError> {
        let note = unopened.remembered()?.map(|bytes| Note::decode(&bytes)).transpose();
        note.map_err(|error| {
            OpenError::Remote(format!("REMOTE in the directory is damaged: {error}").into())
        })
    }

    /// Adds the number of a claim.
    pub(super) fn add(&mut self, number: u64) {
        self.numbers.push(number);
        let excess = self.numbers.len().saturating_sub(NUMBERS_MAX);
        self.numbers.drain(..excess);
    }

    /// Returns the note as bytes: words, and a checksum.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (database, _) = self.database.as_chunks::<8>();
        let mut words = vec![VERSION];
        words.extend(database.iter().map(|word| u64::from_le_bytes(*word)));
        words.push(self.numbers.len() as u64);
        words.extend_from_slice(&self.numbers);
        match self.known {
            None => words.push(if self.is_following { FOLLOWING } else { 0 }),
            Some(Known { position: Position { last, is_end }, local, words: count, cut }) => {
                words.extend([1, last.generation, last.place, last.crc.into(), is_end.into()]);
                words.extend([local.segment, local.offset, count, cut.0, cut.1]);
            }
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Reads a note.
    pub(super) fn decode(bytes: &[u8]) -> Result<Note, Malformed> {
        let damaged = |what: &'static str| Malformed::new(0, what);
        let (contents, crc) = bytes.split_last_chunk::<4>().ok_or(damaged("it is too short"))?;
        if crc32c::crc32c(contents) != u32::from_le_bytes(*crc) {
            return Err(damaged("its checksum is wrong"));
        }
        let contents = contents.strip_prefix(MAGIC).ok_or(damaged("it is no note"))?;
        let (words, rest) = contents.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().ok_or(damaged("it ends too early"));
        let version = next()?;
        if version != VERSION {
            let fault = Fault::Version { found: version as u32, known: VERSION as u32 };
            return Err(damaged("it is of another version").with(fault));
        }
        let mut database = Uuid::default();
        for word in database.as_chunks_mut::<8>().0 {
            *word = next()?.to_le_bytes();
        }
        let count = next()?;
        let numbers = (0..count).map(|_| next()).collect::<Result<_, _>>()?;
        let mut is_following = false;
        let known = match next()? {
            0 => None,
            FOLLOWING => {
                is_following = true;
                None
            }
            1 => {
                let last = Link { generation: next()?, place: next()?, crc: next()? as u32 };
                let position = Position { last, is_end: next()? != 0 };
                let local = LogPlace { segment: next()?, offset: next()? };
                let known = Known { position, local, words: next()?, cut: (next()?, next()?) };
                Some(known)
            }
            _ => return Err(damaged("it has an unknown kind of position")),
        };
        if next().is_ok() || !rest.is_empty() {
            return Err(damaged("there are bytes behind it"));
        }
        Ok(Note { database, numbers, known, is_following })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_damaged_ones_are_refused() {
        let last = Link { generation: 3, place: 9, crc: 0x1234_5678 };
        let known = Known {
            position: Position { last, is_end: true },
            local: LogPlace { segment: 5, offset: 4096 },
            words: 2,
            cut: (4, 77),
        };
        for (known, is_following) in [(None, false), (None, true), (Some(known), false)] {
            let database = *b"a database's uuid".first_chunk().expect("16 bytes");
            let note = Note { database, numbers: vec![1, u64::MAX], known, is_following };
            let bytes = note.encode();
            assert_eq!(Note::decode(&bytes), Ok(note));
            for place in 0..bytes.len() {
                assert!(Note::decode(&bytes[..place]).is_err());
                let mut damaged = bytes.clone();
                damaged[place] ^= 4;
                assert!(Note::decode(&damaged).is_err());
            }
        }
    }
}
