//! Scans: one leaf after another, each observed before anything in it is given out.
//!
//! A cursor has a *frame* for each layer it is in: a copy of one leaf's slots in order, and how far it has come. If these are
//! records all of whose keys are in range, as mostly, they are in the cursor's *hand* instead, which is all that a step has to look
//! at. The next leaf of a layer is the one that the slice beyond the last one's fence belongs to, found from the layer's root; so
//! nothing in the tree has to stay as it is between two steps, and no leaf has to know its neighbours.
//!
//! # Where it begins
//! The words in which both ends of the range agree lead to the layer in which they differ, and the leaves on the way are
//! not observed: what changes in them is about other prefixes. That layer can only end, and its slot become a record's, when its
//! last leaf, which then has been observed, dies. If there is no such layer, it can only begin by a link in the leaf where
//! the way ends, and that leaf is observed.
//!
//! # Layers that end under a cursor
//! A layer of which a leaf has been observed takes that observation with it, since all its leaves are dead (T4): the
//! transaction cannot commit, and the cursor says so. A layer that ends before the cursor has read it is empty, and who
//! fills its prefix again raises the version of the leaf that had its slot, which has been observed.

use super::node::{KEYS, Node, Value, WIDTH};
use super::{OrderedIndex, Trail, descend, look};
use crate::index::{Advance, NodeAt};
use crate::record::{Edge, RecordAt, WordRange};
use crate::sync::{Mutant, Spin, mutant};
use std::cmp::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

/// The slice at which a range ends in layer `depth`, under a prefix of the edge's own words; nothing if it leaves no slice.
/// `inward` is the neighbour of a slice on the range's side.
fn end_slice(edge: &Edge, depth: usize, inward: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let slice = edge.words()[depth];
    let is_last = depth + 1 == edge.words().len();
    if is_last && !edge.is_included() { inward(slice) } else { Some(slice) }
}

/// The part of a layer that belongs to the range.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The first and the last slice.
    from: u64,
    to: u64,
    /// Whether the range's end cuts through the keys with that slice.
    from_is_cut: bool,
    to_is_cut: bool,
}

impl Part {
    /// Whether this is the layer in which the ends of the range part, if they have not done so above.
    fn parts_ways(&self, depth: usize, key_words: usize) -> bool {
        self.from < self.to || depth + 1 == key_words
    }
}

impl WordRange {
    /// The part of layer `depth`, under a prefix through which the ends cut or do not; nothing if it is empty.
    fn part(&self, depth: usize, lower_cuts: bool, upper_cuts: bool) -> Option<Part> {
        let from = if lower_cuts { end_slice(&self.lower, depth, |slice| slice.checked_add(1))? } else { 0 };
        let to = if upper_cuts { end_slice(&self.upper, depth, |slice| slice.checked_sub(1))? } else { u64::MAX };
        let goes_on = depth + 1 < self.lower.words().len();
        let (from_is_cut, to_is_cut) = (lower_cuts && goes_on, upper_cuts && goes_on);
        (from <= to).then_some(Part { from, to, from_is_cut, to_is_cut })
    }

    /// Whether a record, whose key begins in range up to word `depth`, is in it.
    fn holds(&self, record: RecordAt, depth: usize, lower_cuts: bool, upper_cuts: bool) -> bool {
        // The first word that differs decides.
        let order = |edge: &Edge| {
            let mut words = edge.words().iter().enumerate().skip(depth + 1);
            words.find_map(|(word, value)| Some(record.key_word(word).cmp(value)).filter(|order| order.is_ne()))
        };
        let above = !lower_cuts || order(&self.lower).map_or(self.lower.is_included(), Ordering::is_gt);
        let below = !upper_cuts || order(&self.upper).map_or(self.upper.is_included(), Ordering::is_lt);
        above && below
    }
}

/// Room for the slots of a leaf: a power of two, so that a masked index is in bounds.
const ROOM: usize = 16;
const _: () = assert!(WIDTH <= ROOM && ROOM.is_power_of_two());

/// Value words of one leaf, in the cursor's direction.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    words: [u64; ROOM],
    next: usize,
    count: usize,
}

impl Values {
    /// The next one, with its number.
    #[inline(always)]
    fn take(&mut self) -> Option<(usize, Value)> {
        if self.next == self.count {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some((number, Value::of(self.words[number % ROOM])))
    }
}

/// A cursor's place in one layer.
#[derive(Debug, Clone, Copy)]
struct Frame {
    root: Node,
    depth: usize,
    part: Part,
    /// What the current leaf has in the range, unless it is in the cursor's hand.
    values: Values,
    /// Those of them whose keys the range's ends cut through.
    lower_cut: Option<usize>,
    upper_cut: Option<usize>,
    /// The slice that the next leaf is found by; nothing if there is no next leaf.
    target: Option<u64>,
    /// Whether a leaf of this layer has been observed.
    has_observed: bool,
}

/// Brings the nodes nearer that a scan comes to next, while it looks at the records before.
struct Ahead(Direction);

impl Trail for Ahead {
    fn begin(&mut self) {}

    #[inline(always)]
    fn pass(&mut self, node: Node, rank: usize, _version: u64, _high: u64) {
        match self.0 {
            Direction::Forward if rank < KEYS => Node::prefetch(node.child(rank + 1)),
            Direction::Reverse if rank > 0 => Node::prefetch(node.child(rank - 1)),
            _ => {}
        }
    }
}

/// A scan under way. Valid during one pin.
#[derive(Debug)]
pub(crate) struct Cursor {
    range: WordRange,
    direction: Direction,
    /// Records that are in the range, to be given out before anything else.
    hand: Values,
    /// The layer that the cursor is in, and those above it.
    frame: Option<Frame>,
    above: Vec<Frame>,
    has_begun: bool,
}

impl Cursor {
    fn push(&mut self, root: Node, depth: usize, part: Part) {
        let target = Some(if self.direction == Direction::Forward { part.from } else { part.to });
        let values = Values::default();
        let frame = Frame { root, depth, part, values, lower_cut: None, upper_cut: None, target, has_observed: false };
        self.above.extend(self.frame.replace(frame));
    }

    fn pop(&mut self) {
        self.frame = self.above.pop();
    }

    /// The next record, if it is at hand: in a leaf that has been observed, and out of the reach of the range's ends.
    #[inline(always)]
    pub(crate) fn at_hand(&mut self) -> Option<RecordAt> {
        match self.hand.take()? {
            (_, Value::Record(record)) => Some(record),
            _ => unreachable!("only records are taken into the hand"),
        }
    }
}

impl Frame {
    /// The next value, and whether the range's ends cut through its keys.
    fn take(&mut self) -> Option<(Value, (bool, bool))> {
        let (number, value) = self.values.take()?;
        Some((value, (self.lower_cut == Some(number), self.upper_cut == Some(number))))
    }

    /// Copies what the leaf that `target` belongs to has in the range, to the empty hand if possible; the leaf and the version of
    /// the copy, or nothing if the layer is over.
    fn load(&mut self, target: u64, direction: Direction, hand: &mut Values) -> Option<(Node, u64)> {
        let Part { from, to, from_is_cut, to_is_cut } = self.part;
        let is_forward = direction == Direction::Forward;
        // The leaf may hold slices on the near side of the target: it has inherited them, or they have been scanned.
        let (first, last) = if is_forward { (target, to) } else { (from, target) };
        let mut spin = Spin::default();
        loop {
            let spot = descend::<true>(self.root, target, &mut Ahead(direction))?;
            let mut slices = [0; ROOM];
            let (mut count, mut all) = (0, 0);
            for slot in spot.leaf.permutation().live() {
                let (slice, value) = (spot.leaf.slice(slot), spot.leaf.value(slot));
                // Never more than there are slots; the compiler does not see it.
                slices[count % ROOM] = slice;
                hand.words[count % ROOM] = value;
                all |= value;
                Node::prefetch_value(value);
                // A value that is gone has been unlinked since the permutation was loaded (T2).
                count += usize::from((value != 0) & (slice.wrapping_sub(first) <= last - first));
            }
            if !spot.leaf.is_still(spot.version) {
                spin.wait();
                continue;
            }
            (hand.next, hand.count) = (0, count);
            self.target = if is_forward {
                (spot.high < to).then(|| spot.high + 1)
            } else {
                let next = spot.low.saturating_sub(1 + u64::from(mutant(Mutant::ReverseOffByOne)));
                (spot.low > from).then_some(next)
            };
            self.has_observed = true;
            if count > 0 {
                let (lowest, highest) = if is_forward { (0, count - 1) } else { (count - 1, 0) };
                if !is_forward {
                    hand.words[..count].reverse();
                }
                self.lower_cut = (from_is_cut && slices[0] == from).then_some(lowest);
                self.upper_cut = (to_is_cut && slices[count - 1] == to).then_some(highest);
                if Node::may_be_layer(all) || self.lower_cut.is_some() || self.upper_cut.is_some() {
                    self.values = std::mem::take(hand);
                }
            }
            return Some((spot.leaf, spot.version));
        }
    }
}

impl OrderedIndex {
    /// A cursor before the first record of a range. Nothing is loaded or observed yet.
    pub(crate) fn cursor(&self, range: &WordRange, direction: Direction) -> Cursor {
        debug_assert_eq!(range.lower.words().len(), self.key_words);
        let hand = Values::default();
        Cursor { range: *range, direction, hand, frame: None, above: Vec::new(), has_begun: false }
    }

    /// The next record of a range. `observe` is called with each leaf, and the version at which it was read, before any
    /// of its records is given out. The caller is pinned, and has been since the cursor's first step.
    pub(crate) fn advance(&self, cursor: &mut Cursor, observe: &mut impl FnMut(NodeAt, u64)) -> Advance {
        loop {
            if let Some(record) = cursor.at_hand() {
                return Advance::Next(record);
            }
            if !cursor.has_begun
                && let Some(record) = self.begin(cursor, observe)
            {
                return Advance::Next(record);
            }
            let Some(frame) = &mut cursor.frame else { return Advance::End };
            if let Some((value, (lower_cuts, upper_cuts))) = frame.take() {
                let depth = frame.depth;
                match value {
                    Value::Record(record) => {
                        if !(lower_cuts || upper_cuts) || cursor.range.holds(record, depth, lower_cuts, upper_cuts) {
                            return Advance::Next(record);
                        }
                    }
                    Value::Layer(root) => {
                        if let Some(part) = cursor.range.part(depth + 1, lower_cuts, upper_cuts) {
                            Node::prefetch(root.address());
                            cursor.push(root, depth + 1, part);
                        }
                    }
                    Value::Nothing => unreachable!("slots without a value are not copied"),
                }
                continue;
            }
            let Some(target) = frame.target else {
                cursor.pop();
                continue;
            };
            match frame.load(target, cursor.direction, &mut cursor.hand) {
                Some((leaf, version)) => observe(leaf.handle(), version),
                None if frame.has_observed => {
                    cursor.pop();
                    return Advance::Doomed;
                }
                None => {
                    // It ended before we came. If nothing vouches for that yet, the way there has to.
                    Spin::default().wait();
                    cursor.pop();
                    cursor.has_begun = cursor.frame.is_some();
                }
            }
        }
    }

    /// Goes to the layer in which the ends of the range part. If it is missing, observes the leaf that says so, and gives
    /// out what is there instead.
    fn begin(&self, cursor: &mut Cursor, observe: &mut impl FnMut(NodeAt, u64)) -> Option<RecordAt> {
        let mut spin = Spin::default();
        cursor.has_begun = true;
        if cursor.range.is_empty() {
            return None;
        }
        let mut at_end = (true, true);
        let (mut root, mut depth) = (self.root(), 0);
        loop {
            // Nothing lies between two neighbours.
            let part = cursor.range.part(depth, at_end.0, at_end.1)?;
            if part.parts_ways(depth, self.key_words) {
                cursor.push(root, depth, part);
                return None;
            }
            let (lower_cuts, upper_cuts) = (part.from_is_cut, part.to_is_cut);
            match look::<false>(root, part.from) {
                Some((_, Value::Layer(next))) => {
                    (root, depth, at_end) = (next, depth + 1, (lower_cuts, upper_cuts));
                }
                Some((spot, value)) => {
                    observe(spot.leaf.handle(), spot.version);
                    let Value::Record(record) = value else { return None };
                    return cursor.range.holds(record, depth, lower_cuts, upper_cuts).then_some(record);
                }
                None => {
                    spin.wait();
                    (root, depth, at_end) = (self.root(), 0, (true, true));
                }
            }
        }
    }
}
