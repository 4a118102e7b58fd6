//! Changes that a commit has made, for the log.

#![forbid(unsafe_code)]

use crate::record::CellAt;
use crate::schema::Words;
pub(crate) use candide_log::format::commit::ChangeKind;

/// One change of a unit by a commit: the words that the unit has after it.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    pub(crate) at: CellAt,
    pub(crate) kind: ChangeKind,
    /// The position of the first changed word in the unit.
    pub(crate) first: usize,
    /// The changed words, and no others.
    pub(crate) words: Words<'a>,
}

impl Change<'_> {
    /// Returns the change that deletes a row, which has `at` as its first unit.
    #[inline]
    pub(crate) fn delete(at: CellAt) -> Change<'static> {
        Change { at, kind: ChangeKind::Delete, first: 0, words: Words::Own(&[]) }
    }
}

/// Takes the changes of a commit, one after another.
pub trait ChangeSink {
    /// Takes a change.
    fn add(&mut self, change: Change<'_>);
}

impl ChangeSink for &mut dyn ChangeSink {
    fn add(&mut self, change: Change<'_>) {
        (**self).add(change);
    }
}
