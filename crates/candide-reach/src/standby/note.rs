//! What a standby notes with each object.

#![forbid(unsafe_code)]

use super::generations::{EARLIER, Words};
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
    /// Whether the database follows no more.
    pub(super) end: End,
    /// The generation and the place of the latest object that readers have been shown, which may be
    /// behind `last` if an older snapshot has been taken in.
    pub(super) shown: (u64, u64),
    /// What is known of the generations before that of the last object.
    pub(super) earlier: [Words; EARLIER],
}

/// Why a database follows no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It does.
    None,
    /// It is one of its own now, and may have commits of its own.
    Alone,
    /// Its rows differ from the leader's.
    Different,
}

const IS_END: u64 = 1 << 32;

impl Noted {
    /// Returns what a note says.
    pub(super) fn of(note: &Note) -> Noted {
        let ([first, second, generation, place, crc, stamps, cut, own], rest) =
            note.split_first_chunk().expect("a note has more words");
        let ([from, at, from_crc, ended, of, shown], earlier) =
            rest.split_first_chunk().expect("a note has more words");
        let mut database = Uuid::default();
        database[..8].copy_from_slice(&first.to_le_bytes());
        database[8..].copy_from_slice(&second.to_le_bytes());
        let resume = Link { generation: *from, place: *at, crc: *from_crc as u32 };
        let earlier = earlier.as_chunks().0;
        Noted {
            database,
            last: Link { generation: *generation, place: *place, crc: *crc as u32 },
            state: (*stamps, *cut),
            own: *own,
            resume: Position { last: resume, is_end: from_crc & IS_END != 0 },
            end: match ended {
                0 => End::None,
                2 => End::Different,
                _ => End::Alone,
            },
            shown: (*of, *shown),
            earlier: earlier.try_into().expect("the words behind"),
        }
    }

    /// Returns this as a note.
    pub(super) fn note(&self) -> Note {
        let Noted { database, last, state, own, resume, end, shown, earlier } = *self;
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let is_end = if resume.is_end { IS_END } else { 0 };
        let mut note = [0; NOTE_WORDS];
        let (words, rest) = note.split_at_mut(NOTE_WORDS - 2 * EARLIER);
        words.copy_from_slice(&[
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
            match end {
                End::None => 0,
                End::Alone => 1,
                End::Different => 2,
            },
            shown.0,
            shown.1,
        ]);
        rest.copy_from_slice(earlier.as_flattened());
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
            let (last, state) = (link(3), (9, 10));
            let end = if is_end { End::Alone } else { End::Different };
            let (shown, earlier) = ((11, 12), [[13, 14], [15, 16], [17, 18]]);
            let noted = Noted { database, last, state, own: 8, resume, end, shown, earlier };
            assert_eq!(Noted::of(&noted.note()), noted);
        }
    }
}
