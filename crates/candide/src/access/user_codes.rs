//! The user's code of operations over whole units, and late rows, which no operation names.

#![forbid(unsafe_code)]

use super::bases::Bases;
use super::by_address::AddressMap;
use super::item::NONE;
use super::keyed_op::KeyedOp;
use super::late_row::LateRow;
#[cfg(test)]
use super::visits::VISITS;
use crate::record::{CellAt, UserUpdate};
use crate::schema::Op;

/// The user's code of an operation over a whole unit.
#[derive(Clone, Copy)]
pub(super) enum UserCode {
    Updater(UserUpdate),
    /// The step with this number. Among the operands there is room for the words of its unit, from
    /// `image` on.
    Step {
        number: u32,
        image: u32,
    },
    /// A step that has run before the commit. It has left the words from `image` on.
    Done {
        image: u32,
    },
    /// A row whose key the commit computes. No operation names it.
    Late(LateRow),
    /// An operation on a row whose key the commit computes. No operation of an item names it.
    Keyed(KeyedOp),
    /// The note that late rows have been settled, of which this is the number of the oldest.
    Settled(usize),
    /// The note where a search from an end of a table begins.
    Begin(Begin),
}

/// An end of a table: the table's number, and whether it is the end of the last row.
pub(super) type End = (u16, bool);

/// Where a search from an end of a table begins (`ends.rs`).
#[derive(Debug, Clone, Copy)]
pub(super) struct Begin {
    pub(super) end: End,
    /// Whether the key itself is searched.
    pub(super) includes: bool,
    /// The place and the number of the words of the key among the operands.
    pub(super) key: u32,
    pub(super) words: u16,
    /// The number of the note of the same end before this one, or [`NONE`].
    pub(super) older: u32,
}

/// The codes of a transaction, each with its number.
#[derive(Default)]
pub(super) struct UserCodes {
    codes: Vec<UserCode>,
    /// The number of steps that have not run.
    waiting: usize,
    bases: Bases,
    /// The newest note of each end where searches begin.
    begins: AddressMap<u32>,
}

impl UserCodes {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn len(&self) -> usize {
        self.codes.len()
    }

    pub(super) fn clear(&mut self) {
        self.codes.clear();
        self.waiting = 0;
        self.bases.clear();
        self.begins.clear();
    }

    /// Adds a code, and returns its number.
    pub(super) fn push(&mut self, code: UserCode) -> u32 {
        self.waiting += usize::from(matches!(code, UserCode::Step { .. }));
        self.codes.push(code);
        self.codes.len() as u32 - 1
    }

    /// Removes all but the first `count` codes.
    pub(super) fn truncate(&mut self, count: usize) {
        while self.codes.len() > count {
            match self.codes.pop() {
                Some(UserCode::Step { .. }) => self.waiting -= 1,
                Some(UserCode::Settled(oldest)) => self.unsettle(oldest),
                Some(UserCode::Late(row)) => self.bases.undone(&row),
                Some(UserCode::Begin(begin)) => {
                    self.begins.insert(key_of(begin.end), begin.older);
                }
                _ => {}
            }
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&UserCode> {
        self.codes.get(number)
    }

    /// Returns the code of an operation that has one.
    pub(super) fn of(&self, op: &Op) -> &UserCode {
        &self.codes[op.operand as usize]
    }

    /// Returns whether there is a step that has not run.
    pub(super) fn has_steps(&self) -> bool {
        self.waiting > 0
    }

    /// Notes that a step has run. Returns the place of the words that it has left.
    pub(super) fn note_done(&mut self, number: usize) -> u32 {
        let code = &mut self.codes[number];
        let UserCode::Step { image, .. } = *code else { unreachable!("the operation is a step") };
        *code = UserCode::Done { image };
        self.waiting -= 1;
        image
    }

    /// Keeps a late row, the newest one of its base.
    pub(super) fn push_late(&mut self, mut row: LateRow) {
        row.older = self.bases.appended(row.base.address(), self.codes.len() as u32);
        self.push(UserCode::Late(row));
    }

    /// Notes that the late row with this number is settled.
    pub(super) fn settle(&mut self, number: usize) {
        self.note_settled(number, true);
    }

    /// Notes that a late row and the newer ones of its base are not settled any more.
    fn unsettle(&mut self, oldest: usize) {
        let Some(UserCode::Late(LateRow { base, .. })) = self.codes.get(oldest) else { return };
        let mut number = self.bases.newest_on(base.address()) as usize;
        while number >= oldest
            && let Some(older) = self.note_settled(number, false)
        {
            number = older as usize;
        }
    }

    /// Notes whether the late row with this number is settled. Returns the number of the one before
    /// of its base; `None` if there is no such row.
    fn note_settled(&mut self, number: usize, is_settled: bool) -> Option<u32> {
        let Some(UserCode::Late(row)) = self.codes.get_mut(number) else { return None };
        if std::mem::replace(&mut row.is_settled, is_settled) != is_settled {
            self.bases.note_settled(row.base.address(), is_settled);
        }
        Some(row.older)
    }

    /// Returns the number of late rows that are not settled.
    pub(super) fn late(&self) -> usize {
        self.bases.late()
    }

    /// Returns the number of late rows of a base that are not settled.
    pub(super) fn late_on(&self, base: CellAt) -> usize {
        self.bases.late_on(base.address())
    }

    /// Returns all late rows in the order of the program.
    pub(super) fn late_rows(&self) -> impl Iterator<Item = &LateRow> {
        self.codes.iter().filter_map(|code| match code {
            UserCode::Late(row) => Some(row),
            _ => None,
        })
    }

    /// Returns the late rows of a base, the newest first, with their numbers.
    pub(super) fn late_rows_on(&self, base: CellAt) -> impl Iterator<Item = (usize, &LateRow)> {
        let mut next = self.bases.newest_on(base.address());
        std::iter::from_fn(move || {
            #[cfg(test)]
            VISITS.set(VISITS.get() + 1);
            let number = next as usize;
            let Some(UserCode::Late(row)) = self.codes.get(number) else { return None };
            next = row.older;
            Some((number, row))
        })
    }

    /// Returns the operations on rows whose keys the commit computes, in the order of the program.
    pub(super) fn keyed(&self) -> impl Iterator<Item = KeyedOp> {
        self.codes.iter().filter_map(|code| match code {
            UserCode::Keyed(keyed) => Some(*keyed),
            _ => None,
        })
    }

    /// Notes where the next search from an end begins.
    pub(super) fn push_begin(&mut self, mut begin: Begin) {
        let number = self.codes.len() as u32;
        begin.older = self.begins.insert(key_of(begin.end), number).unwrap_or(NONE);
        self.push(UserCode::Begin(begin));
    }

    /// Returns where the next search from an end begins.
    pub(super) fn begin_of(&self, end: End) -> Option<&Begin> {
        if self.begins.is_empty() {
            return None;
        }
        match self.codes.get(*self.begins.get(&key_of(end))? as usize) {
            Some(UserCode::Begin(begin)) => Some(begin),
            _ => None,
        }
    }
}

/// Returns a number that differs from those of other ends.
fn key_of((table, is_last): End) -> u64 {
    u64::from(table) << 1 | u64::from(is_last)
}
