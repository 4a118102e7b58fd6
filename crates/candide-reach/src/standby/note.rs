//! What a standby notes with each object.

#![forbid(unsafe_code)]

use crate::leader::Position;
use crate::object::Link;
use candide::replica::{NOTE_WORDS, Note};
use candide_log::format::Uuid;

/// What a standby notes with each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Noted {
    /// The identity of the database that it follows.
    pub(super) database: Uuid,
    /// The last object that has been applied.
    pub(super) last: Link,
    /// The stamp generation and the cut up to which commits have been applied.
    pub(super) state: (u64, u64),
    /// The stamp generation of the leader of the last object's generation.
    pub(super) own: u64,
    /// The position behind which records may lie that are above the cut. After a restart they are
    /// read again. The default position if they are only in a snapshot.
    pub(super) resume: Position,
    /// Whether the database follows no more, and may have commits of its own.
    pub(super) has_ended: bool,
}

const IS_END: u64 = 1 << 32;

impl Noted {
    /// Returns what a note says.
    pub(super) fn of(note: &Note) -> Noted {
        let [first, second, generation, place, crc, stamps, cut, own, from, at, from_crc, ended] =
            *note;
        let mut database = Uuid::default();
        database[..8].copy_from_slice(&first.to_le_bytes());
        database[8..].copy_from_slice(&second.to_le_bytes());
        let resume = Link { generation: from, place: at, crc: from_crc as u32 };
        Noted {
            database,
            last: Link { generation, place, crc: crc as u32 },
            state: (stamps, cut),
            own,
            resume: Position { last: resume, is_end: from_crc & IS_END != 0 },
            has_ended: ended != 0,
        }
    }

    /// Returns this as a note.
    pub(super) fn note(&self) -> Note {
        let Noted { database, last, state, own, resume, has_ended } = *self;
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let is_end = if resume.is_end { IS_END } else { 0 };
        let note: [u64; NOTE_WORDS] = [
            word(&database[..8]),
            word(&database[8..]),
            last.generation,
            last.place,
            last.crc.into(),
            state.0,
            state.1,
            own,
            resume.last.generation,
            resume.last.place,
            u64::from(resume.last.crc) | is_end,
            has_ended.into(),
        ];
        note
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_are_written() {
        let link = |number| Link { generation: number, place: number + 1, crc: u32::MAX };
        for is_end in [false, true] {
            let resume = Position { last: link(7), is_end };
            let database = std::array::from_fn(|byte| byte as u8);
            let (last, state, has_ended) = (link(3), (9, 10), is_end);
            let noted = Noted { database, last, state, own: 8, resume, has_ended };
            assert_eq!(Noted::of(&noted.note()), noted);
        }
    }
}
