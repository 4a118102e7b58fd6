//! The pieces of changes that are not durable. A crash leaves a subset of them.

use super::contents::Contents;
use super::moment::Moment;
use super::operation::{FileChange, FileId, Names};
use super::unsynced::{Fate, Later, State, Unsynced};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// The size of a sector in bytes: a crash leaves the old or the new content of each.
pub(super) const SECTOR: u64 = 512;

/// A write that makes a file larger may have made it larger by a part, up to one of these places.
const GROWTH: u64 = 4096;

/// A piece of a change that is not durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A change of the directory, or a file that becomes empty.
    Whole,
    /// A file's size becomes at least this.
    Size(u64),
    /// These bytes of a write, counted from the write's first byte.
    Bytes(Range<u64>),
}

/// The pieces of all changes that are not durable at a moment.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    pieces: Vec<Piece>,
    /// For each change of the directory, its pieces.
    names: Vec<Range<usize>>,
    /// For each change of a file, its pieces.
    files: BTreeMap<FileId, Vec<Range<usize>>>,
}

impl Pieces {
    /// Cuts the changes of `moment` into pieces, and the bytes of writes at multiples of `grain`.
    /// The whole bytes of a write are one piece if `grain` is `None`. Bytes that are in the file
    /// already, whatever else survives, are left out.
    pub(super) fn new(moment: &Moment, grain: Option<u64>) -> Self {
        let mut all = Self { pieces: Vec::new(), names: Vec::new(), files: BTreeMap::new() };
        for later in &moment.names.changes {
            let begin = all.pieces.len();
            if later.fate != Fate::Durable {
                all.pieces.push(Piece::Whole);
            }
            all.names.push(begin..all.pieces.len());
        }
        for (id, file) in moment.files.iter().filter(|(_, file)| !file.changes.is_empty()) {
            let mut cutter =
                Cutter { file, grain, least: file.durable.size(), touched: Vec::new() };
            let mut changes = Vec::new();
            for later in &file.changes {
                let begin = all.pieces.len();
                cutter.cut(later, &mut all.pieces);
                changes.push(begin..all.pieces.len());
            }
            all.files.insert(*id, changes);
        }
        all
    }

    /// Returns the number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns the entries of the directory after a crash that leaves the pieces for which `kept`
    /// is true.
    pub(super) fn names(&self, moment: &Moment, kept: impl Fn(usize) -> bool) -> Names {
        let mut names = moment.names.durable.clone();
        for (later, pieces) in moment.names.changes.iter().zip(&self.names) {
            if pieces.clone().all(&kept) {
                names.apply(&later.change);
            }
        }
        names
    }

    /// Returns whether each change of the directory that is kept has something to change: if a
    /// file's creation is lost, it cannot be renamed. Any other subset leaves the same state as a
    /// smaller subset.
    pub(super) fn is_applicable(&self, moment: &Moment, kept: impl Fn(usize) -> bool) -> bool {
        if moment.names.changes.len() < 2 {
            return true;
        }
        let mut names = moment.names.durable.clone();
        moment.names.changes.iter().zip(&self.names).all(|(later, pieces)| {
            let is_kept = pieces.clone().all(&kept);
            if is_kept && !later.change.is_applicable(&names) {
                return later.fate == Fate::Durable;
            }
            if is_kept {
                names.apply(&later.change);
            }
            true
        })
    }

    /// Returns the bytes of a file after a crash that leaves the pieces for which `kept` is true.
    pub(super) fn contents(
        &self,
        moment: &Moment,
        file: FileId,
        kept: impl Fn(usize) -> bool,
    ) -> Contents {
        let Some(state) = moment.files.get(&file) else { return Contents::default() };
        let mut contents = state.durable.clone();
        let Some(changes) = self.files.get(&file) else { return contents };
        for (later, range) in state.changes.iter().zip(changes) {
            if later.fate == Fate::Durable {
                contents.apply(&later.change);
                continue;
            }
            for (index, piece) in range.clone().zip(&self.pieces[range.clone()]) {
                if kept(index) {
                    apply(&mut contents, &later.change, piece);
                }
            }
        }
        contents.cut();
        contents
    }

    /// Returns, for each change that is not durable, a line on the part that is kept.
    pub(super) fn describe(&self, moment: &Moment, kept: impl Fn(usize) -> bool) -> String {
        let mut text = String::new();
        for (later, range) in moment.names.changes.iter().zip(&self.names) {
            self.describe_change(&mut text, &later.change.to_string(), range, &kept);
        }
        for (id, changes) in &self.files {
            for (later, range) in moment.files[id].changes.iter().zip(changes) {
                let change = format!("{}: {}", moment.name(*id), later.change);
                self.describe_change(&mut text, &change, range, &kept);
            }
        }
        text
    }

    fn describe_change(
        &self,
        text: &mut String,
        change: &str,
        range: &Range<usize>,
        kept: &impl Fn(usize) -> bool,
    ) {
        let (survive, are_lost): (Vec<usize>, Vec<usize>) = range.clone().partition(|at| kept(*at));
        let verdict = match (survive.is_empty(), are_lost.is_empty()) {
            (true, true) => return,
            (false, true) => "kept".to_string(),
            (true, false) => "lost".to_string(),
            (false, false) => format!("lost {}", self.list(&are_lost)),
        };
        // Writing to a string does not fail.
        _ = writeln!(text, "  {change}: {verdict}");
    }

    fn list(&self, pieces: &[usize]) -> String {
        let names = pieces.iter().map(|index| match &self.pieces[*index] {
            Piece::Whole => "it".to_string(),
            Piece::Size(size) => format!("size {size}"),
            Piece::Bytes(range) => format!("bytes {}..{}", range.start, range.end),
        });
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Applies one piece of a change of a file.
fn apply(contents: &mut Contents, change: &FileChange, piece: &Piece) {
    match (change, piece) {
        (FileChange::Write { offset, data }, Piece::Bytes(range)) => {
            contents.store(*offset, data, range.clone());
        }
        (_, Piece::Size(size)) => contents.grow(*size),
        (change, _) => contents.apply(change),
    }
}

/// Cuts the changes of one file into pieces, in order.
struct Cutter<'a> {
    file: &'a Unsynced<Contents>,
    grain: Option<u64>,
    /// The least size that the file can have.
    least: u64,
    /// The places that the changes so far may have altered.
    touched: Vec<Range<u64>>,
}

impl Cutter<'_> {
    fn cut(&mut self, later: &Later<FileChange>, pieces: &mut Vec<Piece>) {
        match &later.change {
            FileChange::Empty => {
                self.least = 0;
                self.touched.push(0..u64::MAX);
                if later.fate != Fate::Durable {
                    pieces.push(Piece::Whole);
                }
            }
            FileChange::Write { offset, data } => {
                let end = offset + data.len();
                if later.fate == Fate::Durable {
                    self.touched.push(*offset..end);
                    self.least = self.least.max(end);
                    return;
                }
                if end > self.least {
                    self.cut_growth(*offset, end, pieces);
                }
                let mut at = *offset;
                while at < end {
                    let stop = self
                        .grain
                        .map_or(end, |grain| end.min((at / grain + 1).saturating_mul(grain)));
                    let range = at - offset..stop - offset;
                    if self.is_touched(&(at..stop))
                        || !self.file.durable.has(*offset, data, range.clone())
                    {
                        self.touch(at..stop);
                        pieces.push(Piece::Bytes(range));
                    }
                    at = stop;
                }
            }
        }
    }

    fn cut_growth(&self, offset: u64, end: u64, pieces: &mut Vec<Piece>) {
        let begin = self.least.max(offset);
        let middle = (begin + end) / 2 / GROWTH * GROWTH;
        if self.grain.is_some() && middle > begin {
            pieces.push(Piece::Size(middle));
        }
        pieces.push(Piece::Size(end));
    }

    /// Notes that a change may have changed this place. Adjacent places become one.
    fn touch(&mut self, place: Range<u64>) {
        match self.touched.last_mut() {
            Some(last) if last.end == place.start => last.end = place.end,
            _ => self.touched.push(place),
        }
    }

    fn is_touched(&self, range: &Range<u64>) -> bool {
        self.touched.iter().any(|other| other.start < range.end && range.start < other.end)
    }
}
