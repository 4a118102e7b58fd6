//! Scans: one leaf after another, each observed before anything in it is given out.
//!
//! A cursor has in its *hand* a copy of one leaf's values in order, and a *frame* for each layer it
//! is in, which knows the rest. A step takes the next value; if that is a record, and the ends of
//! the range do not cut through the leaf's keys, the hand is all that it has to look at. A layer
//! that is one leaf of few records needs no frame: they are put into the hand in its place, as a
//! *inlined layer*. The next leaf of a layer is the one that the slice beyond the last one's fence
//! belongs to. It is the next child of the last one's parent, if that has one and is of the version
//! it was passed in; otherwise it is found from the layer's root. So nothing in the tree has to
//! stay as it is between two steps, and no leaf has to know its neighbours.
//!
//! # Why the next child is the next leaf
//! A node keeps the slices between the fences that it was found with, and its children and the keys
//! between them, as long as it keeps its version (OI1, OI3). So its next child is what a descent
//! would find for the slice beyond the separator: it is validated as on a descent (OI5), and its
//! fences come from the same keys. The child may have inherited slices from beyond the node's own
//! fences, without a change of the node: what is outside of a leaf's fences is left to the next
//! descent, which leads to the same leaf.
//!
//! # Where it begins
//! The words in which both ends of the range agree lead to the layer in which they differ, and the
//! leaves on the way are not observed: what changes in them is about other prefixes. That layer can
//! only end, and its slot become a record's, when its last leaf, which then has been observed,
//! dies. If there is no such layer, it can only begin by a link in the leaf where the way ends, and
//! that leaf is observed.
//!
//! # Layers that end under a cursor
//! A layer of which a leaf has been observed takes that observation with it, since all its leaves
//! are dead (OI4): the transaction cannot commit, and the cursor says so. A layer that ends before
//! the cursor has read it is empty, and a writer that fills its prefix again raises the version of
//! the leaf that had its slot, which has been observed.

use super::node::{DEAD, INNER, KEYS, Node, Value};
use super::permutation::WIDTH;
use super::{OrderedIndex, Spot, Trail, descend, look};
use crate::index::node::{Advance, NodeAt};
use crate::record::RecordAt;
use crate::schema::{Edge, WordRange};
use crate::sync::{MODELLED, Mutant, Spin, mutant};
use std::cmp::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

/// Returns the slice at which a range ends in layer `depth`, under a prefix of the edge's own
/// words; nothing if it leaves no slice. `inward` is the neighbour of a slice on the range's side.
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
    /// Whether the end of the range is between keys with that slice.
    from_is_cut: bool,
    to_is_cut: bool,
}

impl Part {
    /// Returns whether the two ends of the range first differ in layer `depth`.
    fn parts_ways(&self, depth: usize, key_words: usize) -> bool {
        self.from < self.to || depth + 1 == key_words
    }
}

impl WordRange {
    /// Returns the part of the range in layer `depth`, under a prefix that contains the lower end,
    /// the upper end, both or neither; `None` if the part is empty.
    fn part(&self, depth: usize, lower_cuts: bool, upper_cuts: bool) -> Option<Part> {
        let from = if lower_cuts {
            end_slice(&self.lower, depth, |slice| slice.checked_add(1))?
        } else {
            0
        };
        let to = if upper_cuts {
            end_slice(&self.upper, depth, |slice| slice.checked_sub(1))?
        } else {
            u64::MAX
        };
        let goes_on = depth + 1 < self.lower.words().len();
        let (from_is_cut, to_is_cut) = (lower_cuts && goes_on, upper_cuts && goes_on);
        (from <= to).then_some(Part { from, to, from_is_cut, to_is_cut })
    }

    /// Returns whether a record, whose key begins in range up to word `depth`, is in it.
    fn holds(&self, record: RecordAt, depth: usize, lower_cuts: bool, upper_cuts: bool) -> bool {
        // The first word that differs decides.
        let order = |edge: &Edge| {
            let mut words = edge.words().iter().enumerate().skip(depth + 1);
            words.find_map(|(word, value)| {
                Some(record.key_word(word).cmp(value)).filter(|order| order.is_ne())
            })
        };
        let above =
            !lower_cuts || order(&self.lower).map_or(self.lower.is_included(), Ordering::is_gt);
        let below =
            !upper_cuts || order(&self.upper).map_or(self.upper.is_included(), Ordering::is_lt);
        above && below
    }
}

/// Space for the slots of a leaf and a zero.
const ROOM: usize = 16;
/// Space for the slots of an inlined layer and a zero. Layers of more are worth a frame.
const TWIG_ROOM: usize = 8;
const _: () = assert!(WIDTH < ROOM);

/// Value words of one leaf, in the cursor's direction, and a zero behind them. Others that are zero
/// were taken out of the leaf while it was copied. Behind that is room for a *inlined layer*: the
/// records of a layer that is one leaf, between two of these values.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    words: [u64; ROOM + TWIG_ROOM],
    next: usize,
    count: usize,
    /// The position at which the cursor goes on behind the inlined layer, if `next` is in one.
    rest: usize,
}

impl Values {
    /// Makes the records of a layer the next ones, if the layer is one leaf with records only;
    /// returns the leaf's version.
    #[inline(always)]
    fn inline_layer<const FORWARD: bool>(&mut self, root: Node) -> Option<u64> {
        let version = root.stable();
        if version & (INNER | DEAD) != 0 {
            return None;
        }
        let permutation = root.permutation();
        let count = permutation.count();
        if count >= TWIG_ROOM {
            return None;
        }
        let mut are_records = count > 0;
        let copy = |(word, slot): (&mut u64, usize)| {
            *word = root.value(slot);
            Node::prefetch_value(*word);
            are_records &= Value::record(*word).is_some();
        };
        let words = self.words[ROOM..][..count].iter_mut();
        match FORWARD {
            true => words.zip(permutation.slots(0)).for_each(copy),
            false => words.rev().zip(permutation.slots(0)).for_each(copy),
        }
        if !are_records || !root.is_still(version) {
            return None;
        }
        // While these are looked at.
        if !MODELLED && let Value::Layer(next) = Value::of(self.words[self.next]) {
            next.prefetch_values(TWIG_ROOM / 2);
        }
        self.words[ROOM + count] = 0;
        (self.rest, self.next) = (self.next, ROOM);
        Some(version)
    }

    /// Goes on behind an inlined layer that is over; returns whether there was one.
    fn leave_inlined_layer(&mut self) -> bool {
        let is_twig = self.next >= ROOM;
        if is_twig {
            self.next = self.rest;
        }
        is_twig
    }

    /// Drops the values.
    fn clear(&mut self) {
        (self.next, self.count, self.words[0]) = (0, 0, 0);
    }

    /// Returns the values that are left, up to the first that is no record.
    #[inline(always)]
    fn records(&self) -> impl Iterator<Item = RecordAt> {
        self.words
            .get(self.next..)
            .unwrap_or_default()
            .iter()
            .map_while(|&word| Value::record(word))
    }

    /// Returns the next value, if it is a record.
    #[inline(always)]
    fn record(&mut self) -> Option<RecordAt> {
        let record = Value::record(*self.words.get(self.next)?)?;
        self.next += 1;
        Some(record)
    }
}

/// The inner node above a leaf, in the version and with the fences it was passed in, and which of
/// its children that is.
#[derive(Debug, Clone, Copy)]
struct Parent {
    node: Node,
    rank: usize,
    version: u64,
    low: u64,
    high: u64,
}

impl Parent {
    /// Returns the rank of the next child, if there may be one.
    #[inline(always)]
    fn next_rank<const FORWARD: bool>(&self) -> Option<usize> {
        if FORWARD { (self.rank < KEYS).then_some(self.rank + 1) } else { self.rank.checked_sub(1) }
    }

    /// Prefetches the next leaf; or, if that was done at the leaf before, its records and the leaf
    /// behind it.
    #[inline(always)]
    fn prefetch_next<const FORWARD: bool>(mut self, is_at_hand: bool) {
        let Some(rank) = self.next_rank::<FORWARD>() else { return };
        let next = self.node.child(rank);
        if !is_at_hand {
            Node::prefetch(next);
        } else if !MODELLED && next != 0 && self.node.is_still(self.version) {
            // OI5: it was the next leaf when the parent was of this version, which is enough for a
            // prefetch.
            Node::at(next).prefetch_values(WIDTH);
            self.rank = rank;
            if let Some(rank) = self.next_rank::<FORWARD>() {
                Node::prefetch(self.node.child(rank));
            }
        }
    }

    /// Returns child `rank`, if it is a leaf and the parent's version is unchanged.
    #[inline(always)]
    fn leaf(&self, rank: usize) -> Option<Spot> {
        let &Parent { node, version, low, high, .. } = self;
        let (child, (low, high)) = (node.child(rank), node.fences(rank, low, high));
        // OI5, as in `descend`.
        if child == 0 || !node.is_still(version) {
            return None;
        }
        let leaf = Node::at(child);
        let leaf_version = leaf.stable();
        if leaf_version & INNER != 0 || !node.is_still(version) {
            return None;
        }
        debug_assert!(leaf_version & DEAD == 0, "OI5: a node dies under its parent's lock");
        Some(Spot { leaf, version: leaf_version, low, high })
    }
}

/// Keeps the last inner node of a descent.
impl Trail for Option<Parent> {
    fn begin(&mut self) {
        *self = None;
    }

    #[inline(always)]
    fn pass(&mut self, node: Node, rank: usize, version: u64, low: u64, high: u64) {
        *self = Some(Parent { node, rank, version, low, high });
    }
}

/// A cursor's place in one layer. Kept small: where layers have few keys, it is stored and restored
/// for every other row.
#[derive(Debug, Clone, Copy)]
struct Frame {
    root: Node,
    depth: u8,
    part: Part,
    /// How many of the values in the hand have been taken, if the range's ends cut through the keys
    /// of some of them; for the hand itself they are over. Otherwise their number.
    taken: u8,
    /// Those whose keys are cut through.
    lower_cut: Option<u8>,
    upper_cut: Option<u8>,
    /// The parent of the current leaf; `None` if the leaf has none or it is unknown.
    parent: Option<Parent>,
    /// The slice by which the next leaf is found; `None` if there is no next leaf.
    target: Option<u64>,
    /// Whether a leaf of this layer has been observed.
    has_observed: bool,
}

/// A scan under way. Valid during one pin.
#[derive(Debug)]
pub(crate) struct Cursor {
    range: WordRange,
    direction: Direction,
    /// The values of the current leaf in the range.
    hand: Values,
    /// The layer that the cursor is in.
    frame: Option<Frame>,
    /// The `height` layers above the current one, with the values that the hand held in each. The
    /// rest of the vector is unused.
    above: Vec<(Frame, Values)>,
    height: usize,
    /// Whether `frame` holds the cursor's position. True from the beginning if the range is empty.
    has_begun: bool,
}

impl Cursor {
    /// Enters a layer.
    fn enter(&mut self, root: Node, depth: usize, part: Part) {
        let target = Some(if self.direction == Direction::Forward { part.from } else { part.to });
        let (lower_cut, upper_cut, parent) = (None, None, None);
        self.frame = Some(Frame {
            root,
            depth: depth as u8,
            part,
            taken: 0,
            lower_cut,
            upper_cut,
            parent,
            target,
            has_observed: false,
        });
    }

    /// Enters a layer, to come back.
    fn push(&mut self, root: Node, depth: usize, part: Part) {
        if let Some(frame) = &self.frame {
            match self.above.get_mut(self.height) {
                // Part by part, in place.
                Some((above, hand)) => {
                    *above = *frame;
                    *hand = self.hand;
                }
                None => self.above.push((*frame, self.hand)),
            }
            self.height += 1;
            self.hand.clear();
        }
        self.enter(root, depth, part);
    }

    fn pop(&mut self) {
        let Some(height) = self.height.checked_sub(1) else {
            self.frame = None;
            self.hand.clear();
            return;
        };
        let (frame, hand) = &self.above[height];
        self.frame = Some(*frame);
        self.hand = *hand;
        self.height = height;
    }

    /// Returns the slice by which the next leaf is found; `None` if the layer has no further leaf,
    /// or the hand has values that were not taken.
    #[inline(always)]
    fn next_leaf(&self) -> Option<u64> {
        let is_over = |frame: &&Frame| {
            self.hand.next == self.hand.count && usize::from(frame.taken) == self.hand.count
        };
        self.frame.as_ref().filter(is_over)?.target
    }

    /// Loads the leaf that `target` belongs to, in the layer in which the cursor is.
    #[inline(always)]
    fn load(&mut self, target: u64) -> Option<(Node, u64)> {
        let frame = self.frame.as_mut()?;
        match self.direction {
            Direction::Forward => frame.load::<true>(target, &mut self.hand),
            Direction::Reverse => frame.load::<false>(target, &mut self.hand),
        }
    }

    /// As [`Values::inline_layer`].
    fn inline_layer(&mut self, root: Node) -> Option<u64> {
        match self.direction {
            Direction::Forward => self.hand.inline_layer::<true>(root),
            Direction::Reverse => self.hand.inline_layer::<false>(root),
        }
    }

    /// Leaves a layer that is over; returns whether one of its leaves had been observed.
    #[cold]
    fn leave_ended_layer(&mut self) -> bool {
        let has_observed = self.frame.is_some_and(|frame| frame.has_observed);
        self.pop();
        if !has_observed {
            // The layer ended before this scan came to it. If no observed node proves that yet, the
            // scan observes the nodes on the way there.
            Spin::default().wait();
            self.has_begun = self.frame.is_some();
        }
        has_observed
    }

    /// Returns the range that it goes through, and which way.
    pub(crate) fn range(&self) -> (&WordRange, Direction) {
        (&self.range, self.direction)
    }

    /// Returns the next record, if it is at hand: it is in a leaf that has been observed, and not
    /// near an end of the range.
    #[inline(always)]
    pub(crate) fn at_hand(&mut self) -> Option<RecordAt> {
        self.hand.record()
    }

    /// Returns the last of the records at hand.
    pub(crate) fn last_at_hand(&self) -> Option<RecordAt> {
        self.hand.records().last()
    }

    /// Gives out records at hand, until one is not wanted, which stays.
    #[inline(always)]
    pub(crate) fn give_while(&mut self, mut wanted: impl FnMut(RecordAt) -> bool) {
        self.hand.next += self.hand.records().take_while(|&record| wanted(record)).count();
    }
}

impl Frame {
    /// Returns the next value in the hand, and whether the range's ends cut through its keys.
    fn take(&mut self, hand: &mut Values) -> Option<(Value, (bool, bool))> {
        if hand.next < hand.count {
            hand.next += 1;
            return Some((Value::of(hand.words[hand.next - 1]), (false, false)));
        }
        if usize::from(self.taken) < hand.count {
            let number = self.taken;
            self.taken += 1;
            let cuts = (self.lower_cut == Some(number), self.upper_cut == Some(number));
            return Some((Value::of(hand.words[usize::from(number)]), cuts));
        }
        None
    }

    /// Returns the leaf that `target` belongs to, and whether that leaf was the next child of the
    /// previous leaf's parent; `None` at the end of the layer.
    #[inline(always)]
    fn next_leaf<const FORWARD: bool>(&mut self, target: u64) -> Option<(Spot, bool)> {
        if let Some(parent) = &mut self.parent
            && let Some(rank) = parent.next_rank::<FORWARD>()
            && let Some(spot) = parent.leaf(rank)
        {
            parent.rank = rank;
            return Some((spot, true));
        }
        let mut parent = None;
        let spot = descend::<true>(self.root, target, &mut parent);
        self.parent = parent;
        Some((spot?, false))
    }

    /// Copies the values of the range in the leaf that `target` belongs to into the hand. Returns
    /// the leaf and the version of the copy; `None` at the end of the layer.
    #[inline(always)]
    fn load<const FORWARD: bool>(&mut self, target: u64, hand: &mut Values) -> Option<(Node, u64)> {
        let Part { from, to, from_is_cut, to_is_cut } = self.part;
        let mut spin = Spin::default();
        loop {
            let (Spot { leaf, version, low, high }, is_next_child) =
                self.next_leaf::<FORWARD>(target)?;
            // The leaf may hold slices on the near side of the target, which have been scanned, and
            // others beyond its fences: it has inherited them, and the next target leads to it
            // again.
            let (first, last) =
                if FORWARD { (target, to.min(high)) } else { (from.max(low), target) };
            let permutation = leaf.permutation();
            let slice_at = |rank| leaf.slice(permutation.slot(rank));
            let live = permutation.count();
            let begin = (0..live).find(|&rank| slice_at(rank) >= first).unwrap_or(live);
            let end = (begin..live)
                .rev()
                .find(|&rank| slice_at(rank) <= last)
                .map_or(begin, |rank| rank + 1);
            let count = end - begin;
            let lower_is_cut = from_is_cut && count > 0 && slice_at(begin) == from;
            let upper_is_cut = to_is_cut && count > 0 && slice_at(end - 1) == to;
            // One loop serves both directions.
            let copy = |(word, slot): (&mut u64, usize)| {
                *word = leaf.value(slot);
                Node::prefetch_value(*word);
            };
            let words = hand.words[..count].iter_mut();
            match FORWARD {
                true => words.zip(permutation.slots(begin)).for_each(copy),
                false => words.rev().zip(permutation.slots(begin)).for_each(copy),
            }
            if !leaf.is_still(version) {
                self.parent = None;
                spin.wait();
                continue;
            }
            hand.words[count] = 0;
            (hand.next, hand.count, self.taken) = (0, count, count as u8);
            self.target = if FORWARD {
                (high < to).then(|| high + 1)
            } else {
                let next = low.saturating_sub(1 + u64::from(mutant(Mutant::ReverseOffByOne)));
                (low > from).then_some(next)
            };
            self.has_observed = true;
            if lower_is_cut || upper_is_cut {
                let last = count as u8 - 1;
                let (lowest, highest) = if FORWARD { (0, last) } else { (last, 0) };
                self.lower_cut = lower_is_cut.then_some(lowest);
                self.upper_cut = upper_is_cut.then_some(highest);
                (hand.next, self.taken) = (count, 0);
            }
            if self.target.is_some()
                && let Some(parent) = self.parent
            {
                parent.prefetch_next::<FORWARD>(is_next_child);
            }
            return Some((leaf, version));
        }
    }
}

impl OrderedIndex {
    /// Returns a cursor before the first record of a range. Nothing is loaded or observed yet.
    #[inline(always)]
    pub(crate) fn cursor(&self, range: WordRange, direction: Direction) -> Cursor {
        range.expect_words(self.key_words);
        let has_begun = range.is_empty();
        Cursor {
            range,
            direction,
            hand: Values::default(),
            frame: None,
            above: Vec::new(),
            height: 0,
            has_begun,
        }
    }

    /// Returns the next record of a range. `observe` is called with each leaf, and the version at
    /// which it was read, before any of its records is given out. The caller is pinned, and has
    /// been since the cursor's first step.
    #[inline]
    pub(crate) fn advance(
        &self,
        cursor: &mut Cursor,
        observe: &mut impl FnMut(NodeAt, u64),
    ) -> Advance {
        loop {
            if let Some(record) = cursor.at_hand() {
                return Advance::Next(record);
            }
            let Some(target) = cursor.next_leaf() else {
                match self.turn(cursor, observe) {
                    Some(advance) => return advance,
                    None => continue,
                }
            };
            match cursor.load(target) {
                Some((leaf, version)) => observe(leaf.handle(), version),
                None => {
                    if cursor.leave_ended_layer() {
                        return Advance::Doomed;
                    }
                }
            }
        }
    }

    /// Takes every step that does not simply go on in a leaf or to the next leaf of the same layer:
    /// begins, handles a value in the hand that is not a record, or leaves the layer. Returns the
    /// record or the end that it has reached, if any. Out of line, so that simple steps are short.
    #[inline(never)]
    fn turn(&self, cursor: &mut Cursor, observe: &mut dyn FnMut(NodeAt, u64)) -> Option<Advance> {
        if !cursor.has_begun
            && let Some(record) = self.begin(cursor, observe)
        {
            return Some(Advance::Next(record));
        }
        if cursor.hand.leave_inlined_layer() {
            return None;
        }
        let Some(frame) = &mut cursor.frame else { return Some(Advance::End) };
        let depth = usize::from(frame.depth);
        match frame.take(&mut cursor.hand) {
            Some((Value::Record(record), (lower_cuts, upper_cuts))) => {
                let is_in_range = !(lower_cuts || upper_cuts)
                    || cursor.range.holds(record, depth, lower_cuts, upper_cuts);
                is_in_range.then_some(Advance::Next(record))
            }
            Some((Value::Layer(root), (lower_cuts, upper_cuts))) => {
                if !(lower_cuts || upper_cuts)
                    && let Some(version) = cursor.inline_layer(root)
                {
                    if !mutant(Mutant::InlinedLayerUnobserved) {
                        observe(root.handle(), version);
                    }
                } else if let Some(part) = cursor.range.part(depth + 1, lower_cuts, upper_cuts) {
                    Node::prefetch(root.address());
                    cursor.push(root, depth + 1, part);
                }
                None
            }
            // Unlinked since the permutation was loaded (OI2).
            Some((Value::Nothing, _)) => None,
            None if frame.target.is_some() => None,
            None if cursor.height == 0 => Some(Advance::End),
            None => {
                cursor.pop();
                None
            }
        }
    }

    /// Descends to the layer in which the two ends of the range differ. If that layer is missing,
    /// observes the leaf that proves it, and returns the record in its place, if any.
    fn begin(&self, cursor: &mut Cursor, observe: &mut dyn FnMut(NodeAt, u64)) -> Option<RecordAt> {
        let mut spin = Spin::default();
        cursor.has_begun = true;
        let mut at_end = (true, true);
        let (mut root, mut depth) = (self.root(), 0);
        loop {
            // Nothing lies between two neighbours.
            let part = cursor.range.part(depth, at_end.0, at_end.1)?;
            if part.parts_ways(depth, self.key_words) {
                cursor.enter(root, depth, part);
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
                    return cursor
                        .range
                        .holds(record, depth, lower_cuts, upper_cuts)
                        .then_some(record);
                }
                None => {
                    spin.wait();
                    (root, depth, at_end) = (self.root(), 0, (true, true));
                }
            }
        }
    }
}
