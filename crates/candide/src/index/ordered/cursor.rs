//! Scans: a cursor reads one leaf after another and observes each before it returns its records.
//!
//! A cursor has a *hand*, which is a copy of one leaf's values in order, and a *frame* for each
//! layer it is in. A frame holds the rest of the state. A step takes the next value from the hand.
//! If that value is a record, and the ends of the range do not cut through the leaf's keys, the
//! step reads nothing but the hand. A layer that is one leaf of few records needs no frame: its
//! records are put into the hand in its place, as an *inlined layer*. The next leaf of a layer is
//! the leaf of the slice beyond the last leaf's fence. That leaf is the next child of the last
//! leaf's parent, if there is a next child and the parent still has the version at which it was
//! passed. Otherwise the next leaf is found from the layer's root. So the tree may change freely
//! between two steps, and leaves need no links to their neighbours.
//!
//! # Why the next child is the next leaf
//! As long as a node keeps its version, it keeps the slices between the fences that it was found
//! with, its children, and the keys between them (OI1, OI3). So its next child is the node that a
//! descent would find for the slice beyond the separator: the child is validated as on a descent
//! (OI5), and its fences come from the same keys. The child may have inherited slices from beyond
//! the node's own fences, without a change of the node. Such slices, outside of a leaf's fences,
//! are left to the next descent, which leads to the same leaf.
//!
//! # Where a cursor begins
//! The words in which both ends of the range agree lead to the layer in which the ends differ. The
//! leaves on the path to that layer are not observed, since changes in them concern other prefixes.
//! The layer can end, and its slot become a record's, only when its last leaf dies, and by then
//! that leaf has been observed. If there is no such layer, it can begin only by a link in the leaf
//! where the path ends, and that leaf is observed.
//!
//! # Layers that end under a cursor
//! When a layer ends, all its leaves are dead (OI4). If one of them has been observed, that
//! observation fails: the transaction cannot commit, and the cursor returns [`Advance::Doomed`]. If
//! a layer ends before the cursor has read any of its leaves, the cursor treats the layer as empty.
//! A writer that links a key with its prefix again raises the version of the leaf that had the
//! layer's slot, and that leaf has been observed.

use super::node::{DEAD, INNER, KEYS, Node, Value};
use super::permutation::WIDTH;
use super::{OrderedIndex, Spot, Trail, descend, look};
use crate::index::node::{Advance, NodeAt};
use crate::record::RecordAt;
use crate::schema::{Edge, WordRange};
use crate::sync::{MODELLED, Spin};
use std::cmp::Ordering;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

/// Returns the slice at which a range ends in layer `depth`, under a prefix that consists of the
/// edge's own words. Returns `None` if the end leaves no slice. `inward` returns the neighbour of a
/// slice on the range's side.
fn end_slice(edge: &Edge, depth: usize, inward: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let slice = edge.words()[depth];
    let is_last = depth + 1 == edge.words().len();
    if is_last && !edge.is_included() { inward(slice) } else { Some(slice) }
}

/// The part of a layer that belongs to the range.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The smallest and the largest slice of the part.
    from: u64,
    to: u64,
    /// Whether an end of the range cuts through the keys with the slice `from`, or `to`.
    from_is_cut: bool,
    to_is_cut: bool,
}

impl Part {
    /// Returns whether the ends of the range differ in layer `depth` or this is the last layer,
    /// given that the ends agree in all layers above.
    fn parts_ways(&self, depth: usize, key_words: usize) -> bool {
        self.from < self.to || depth + 1 == key_words
    }
}

impl WordRange {
    /// Returns the part of layer `depth` that belongs to the range; `None` if it is empty.
    /// `lower_cuts` and `upper_cuts` are whether the range's ends cut through the keys with the
    /// layer's prefix.
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

    /// Returns whether the range contains `record`, whose key is in range up to word `depth`.
    fn holds(&self, record: RecordAt, depth: usize, lower_cuts: bool, upper_cuts: bool) -> bool {
        // The first word that differs from the edge decides.
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

/// Space for the slots of a leaf and a final zero.
const ROOM: usize = 16;
/// Space for the slots of an inlined layer and a final zero. A larger layer is given a frame.
const TWIG_ROOM: usize = 8;
const _: () = assert!(WIDTH < ROOM);

/// The value words of one leaf, in the cursor's direction, and a zero behind them. Any other zero
/// is the value of a record that was unlinked while the leaf was copied. Behind these is space for
/// an *inlined layer*: the records of a layer that is one leaf, to be returned between two of these
/// values.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    words: [u64; ROOM + TWIG_ROOM],
    next: usize,
    count: usize,
    /// The index at which the cursor continues after the inlined layer, if `next` is in one.
    rest: usize,
}

impl Values {
    /// Puts the records of a layer next, if the layer is one leaf of few slots that are all
    /// records. Returns the leaf's version; `None` if the layer is not inlined.
    #[cfg_attr(not(debug_assertions), inline(always))]
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
        // Prefetches the next layer while the caller uses these records.
        if !MODELLED && let Value::Layer(next) = Value::of(self.words[self.next]) {
            next.prefetch_values(TWIG_ROOM / 2);
        }
        self.words[ROOM + count] = 0;
        (self.rest, self.next) = (self.next, ROOM);
        Some(version)
    }

    /// Leaves the inlined layer, which has ended, for the values behind it. Returns whether there
    /// was such a layer.
    fn leave_inlined_layer(&mut self) -> bool {
        let is_twig = self.next >= ROOM;
        if is_twig {
            self.next = self.rest;
        }
        is_twig
    }

    /// Replaces all values by `value`, which counts as taken.
    fn take_only(&mut self, value: Value) {
        self.words[..2].copy_from_slice(&[value.word(), 0]);
        (self.next, self.count) = (1, 1);
    }

    /// Removes all values.
    fn clear(&mut self) {
        (self.next, self.count, self.words[0]) = (0, 0, 0);
    }

    /// Returns the remaining values, up to the first that is not a record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn records(&self) -> impl Iterator<Item = RecordAt> {
        self.words
            .get(self.next..)
            .unwrap_or_default()
            .iter()
            .map_while(|&word| Value::record(word))
    }

    /// Takes the next value if it is a record; `None` otherwise.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn record(&mut self) -> Option<RecordAt> {
        let record = Value::record(*self.words.get(self.next)?)?;
        self.next += 1;
        Some(record)
    }
}

/// The inner node above a leaf, with the version and the fences at which it was passed, and the
/// leaf's rank among its children.
#[derive(Debug, Clone, Copy)]
struct Parent {
    node: Node,
    rank: usize,
    version: u64,
    low: u64,
    high: u64,
}

impl Parent {
    /// Returns the rank of the next child; `None` if the node has no room for one there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_rank<const FORWARD: bool>(&self) -> Option<usize> {
        if FORWARD { (self.rank < KEYS).then_some(self.rank + 1) } else { self.rank.checked_sub(1) }
    }

    /// Prefetches the next leaf. If `is_at_hand`, that was done one leaf before; then prefetches
    /// the next leaf's records, and the leaf after it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn prefetch_next<const FORWARD: bool>(mut self, is_at_hand: bool) {
        let Some(rank) = self.next_rank::<FORWARD>() else { return };
        let next = self.node.child(rank);
        if !is_at_hand {
            Node::prefetch(next);
        } else if !MODELLED && next != 0 && self.node.is_still(self.version) {
            // OI5: the child was the next leaf when the parent had this version. This knowledge is
            // enough for a prefetch.
            Node::at(next).prefetch_values(WIDTH);
            self.rank = rank;
            if let Some(rank) = self.next_rank::<FORWARD>() {
                Node::prefetch(self.node.child(rank));
            }
        }
    }

    /// Returns child `rank` if it is a leaf and the node still has its version; `None` otherwise.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn leaf(&self, rank: usize) -> Option<Spot> {
        let &Parent { node, version, low, high, .. } = self;
        let (child, (low, high)) = (node.child(rank), node.fences(rank, low, high));
        // The version is validated by OI5, as in `descend`.
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

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pass(&mut self, node: Node, rank: usize, version: u64, low: u64, high: u64) {
        *self = Some(Parent { node, rank, version, low, high });
    }
}

/// A cursor's place in one layer. A frame is small because, where layers have few keys, it is
/// stored and restored for every second row.
#[derive(Debug, Clone, Copy)]
struct Frame {
    root: Node,
    depth: u8,
    part: Part,
    /// The number of values in the hand that [`Frame::take`] has returned, if the range's ends cut
    /// through the keys of some of the values; then the hand itself counts as used up. Otherwise
    /// the number of all values.
    taken: u8,
    /// The index of the value whose keys the range's lower, or upper, end cuts through; `None` if
    /// there is none.
    lower_cut: Option<u8>,
    upper_cut: Option<u8>,
    /// The parent of the current leaf; `None` if there is no parent or it is not known.
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
    /// The values of the current leaf that are in the range.
    hand: Values,
    /// The layer that the cursor is in.
    frame: Option<Frame>,
    /// The layers above `frame`, `height` of them, each with the hand it had. Further elements are
    /// spare room.
    above: Vec<(Frame, Values)>,
    height: usize,
    /// Whether `frame` gives the cursor's place. True from the beginning if the range is empty.
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

    /// Enters a layer, and stores the current one so that the cursor can return to it.
    fn push(&mut self, root: Node, depth: usize, part: Part) {
        if let Some(frame) = &self.frame {
            match self.above.get_mut(self.height) {
                // The fields are stored one by one, in place.
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

    /// Returns the slice by which the next leaf of the layer is found. Returns `None` if there is
    /// no next leaf, or if values are left in the hand.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_leaf(&self) -> Option<u64> {
        let is_over = |frame: &&Frame| {
            self.hand.next == self.hand.count && usize::from(frame.taken) == self.hand.count
        };
        self.frame.as_ref().filter(is_over)?.target
    }

    /// Loads the leaf that `target` belongs to, in the current layer. Returns the leaf and its
    /// version; `None` if the layer has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load(&mut self, target: u64) -> Option<(Node, u64)> {
        let frame = self.frame.as_mut()?;
        match self.direction {
            Direction::Forward => frame.load::<true>(target, &mut self.hand),
            Direction::Reverse => frame.load::<false>(target, &mut self.hand),
        }
    }

    /// Does the same as [`Values::inline_layer`].
    fn inline_layer(&mut self, root: Node) -> Option<u64> {
        match self.direction {
            Direction::Forward => self.hand.inline_layer::<true>(root),
            Direction::Reverse => self.hand.inline_layer::<false>(root),
        }
    }

    /// Leaves a layer that has ended. Returns whether one of its leaves had been observed.
    #[cold]
    fn leave_ended_layer(&mut self) -> bool {
        let has_observed = self.frame.is_some_and(|frame| frame.has_observed);
        self.pop();
        if !has_observed {
            // The layer ended before the cursor read it. If no layer is left, no observed leaf
            // shows this yet; so the cursor begins again, and observes that leaf.
            Spin::default().wait();
            self.has_begun = self.frame.is_some();
        }
        has_observed
    }

    /// Returns the range that the cursor goes through, and its direction.
    pub(crate) fn range(&self) -> (&WordRange, Direction) {
        (&self.range, self.direction)
    }

    /// Returns whether no step has been taken yet. Then nothing has been loaded or observed.
    pub(crate) fn is_fresh(&self) -> bool {
        !self.has_begun
    }

    /// Returns this fresh cursor with the other direction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reversed(self, direction: Direction) -> Cursor {
        debug_assert!(self.is_fresh(), "a cursor that has begun keeps its direction");
        Cursor { direction, ..self }
    }

    /// Returns the record that the last step has returned; `None` before the first step, and after
    /// the end.
    pub(crate) fn last_returned(&self) -> Option<RecordAt> {
        // Every record that is returned was taken from the hand just before.
        let taken = match (self.hand.next, &self.frame) {
            (next, Some(frame)) if next < ROOM => next.min(usize::from(frame.taken)),
            (next, _) => next,
        };
        Value::record(self.hand.words[taken.checked_sub(1)?])
    }

    /// Takes the next record if it is at hand: in a leaf that has been observed, all of whose
    /// values in the hand lie wholly within the range.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at_hand(&mut self) -> Option<RecordAt> {
        self.hand.record()
    }

    /// Returns the last of the records at hand; `None` if there are none.
    pub(crate) fn last_at_hand(&self) -> Option<RecordAt> {
        self.hand.records().last()
    }

    /// Takes records at hand as long as `wanted` returns true. The first record that is not wanted
    /// stays.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn give_while(&mut self, mut wanted: impl FnMut(RecordAt) -> bool) {
        self.hand.next += self.hand.records().take_while(|&record| wanted(record)).count();
    }
}

impl Frame {
    /// Takes the next value in the hand, and returns it with whether the range's lower and upper
    /// ends cut through its keys.
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

    /// Returns the leaf that `target` belongs to, and whether it was the next child of the last
    /// leaf's parent. Returns `None` if the layer has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// Copies to the hand the values in the range of the leaf that `target` belongs to. Returns the
    /// leaf and the version of the copy; `None` if the layer has ended.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn load<const FORWARD: bool>(&mut self, target: u64, hand: &mut Values) -> Option<(Node, u64)> {
        let Part { from, to, from_is_cut, to_is_cut } = self.part;
        let mut spin = Spin::default();
        loop {
            let (Spot { leaf, version, low, high }, is_next_child) =
                self.next_leaf::<FORWARD>(target)?;
            // The leaf may hold slices on the near side of the target, which have been scanned. The
            // leaf may also hold inherited slices beyond its fences; the next target leads to it
            // again for these.
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
            // The loop serves both directions.
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
            self.target =
                if FORWARD { (high < to).then(|| high + 1) } else { (low > from).then(|| low - 1) };
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
    /// Returns a cursor before the first record of a range. Nothing has been loaded or observed
    /// yet.
    #[cfg_attr(not(debug_assertions), inline(always))]
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

    /// Returns the next record of a range. Calls `observe` with each leaf, and the version at which
    /// it was read, before returning any of its records. The caller is pinned, and has been since
    /// the cursor's first step.
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

    /// Continues where the next step is not simply the next leaf of the same layer: begins the
    /// scan, takes a value that is not simply a record from the hand, or leaves the layer. Returns
    /// the record or the end that is reached; `None` if the caller has to continue. This is a
    /// separate function so that [`OrderedIndex::advance`] is short.
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
                    observe(root.handle(), version);
                } else if let Some(part) = cursor.range.part(depth + 1, lower_cuts, upper_cuts) {
                    Node::prefetch(root.address());
                    cursor.push(root, depth + 1, part);
                }
                None
            }
            // The record has been unlinked since the permutation was loaded (OI2).
            Some((Value::Nothing, _)) => None,
            None if frame.target.is_some() => None,
            None if cursor.height == 0 => Some(Advance::End),
            None => {
                cursor.pop();
                None
            }
        }
    }

    /// Enters the layer in which the ends of the range differ. If there is no such layer, observes
    /// the leaf that shows this, and returns the record that is in the range instead; `None` if
    /// there is none.
    fn begin(&self, cursor: &mut Cursor, observe: &mut dyn FnMut(NodeAt, u64)) -> Option<RecordAt> {
        let mut spin = Spin::default();
        cursor.has_begun = true;
        let mut at_end = (true, true);
        let (mut root, mut depth) = (self.root(), 0);
        loop {
            // The part is empty if the range lies between two neighbouring slices.
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
                    let is_in_range = cursor.range.holds(record, depth, lower_cuts, upper_cuts);
                    return is_in_range.then(|| cursor.hand.take_only(value)).map(|()| record);
                }
                None => {
                    spin.wait();
                    (root, depth, at_end) = (self.root(), 0, (true, true));
                }
            }
        }
    }
}
