//! Checkpoints: what the operations of an item have done up to one of them.

#![forbid(unsafe_code)]

use super::item::Mark;
use super::sums::{Place, Sums};

/// The checkpoints of all items. Those of one item are linked from the newest to the oldest.
#[derive(Default)]
pub(super) struct Checkpoints(Vec<Checkpoint>);

/// What the operations of an item up to `last_op` have done.
struct Checkpoint {
    last_op: u32,
    result: UpTo,
    /// The number of the item's previous checkpoint.
    before: u32,
}

/// What operations have done.
#[derive(Clone, Copy)]
pub(super) enum UpTo {
    /// A read has applied them to an image of the unit. This is the position of the image's words
    /// among the operands.
    Image(u32),
    /// They have added to the number at a place. This holds whatever the stored number is.
    Sums(Place, Sums),
}

impl Checkpoints {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a checkpoint of an item, whose newest one has the number `newest`.
    pub(super) fn add(&mut self, last_op: u32, result: UpTo, newest: &mut u32) {
        self.0.push(Checkpoint { last_op, result, before: *newest });
        *newest = self.0.len() as u32 - 1;
    }

    /// Returns the checkpoints of an item, the newest first.
    fn of(&self, newest: u32) -> impl Iterator<Item = &Checkpoint> {
        let mut next = newest;
        std::iter::from_fn(move || {
            let checkpoint = self.0.get(next as usize)?;
            next = checkpoint.before;
            Some(checkpoint)
        })
    }

    /// Returns the last operation of the newest checkpoint before `mark`.
    pub(super) fn last_op_before(&self, newest: u32, mark: Mark) -> Option<u32> {
        self.of(newest).map(|checkpoint| checkpoint.last_op).find(|&last_op| last_op < mark.0)
    }

    /// Returns the last operation and the image of the newest checkpoint before `mark` that has an
    /// image.
    pub(super) fn image_before(&self, newest: u32, mark: Mark) -> Option<(u32, u32)> {
        self.of(newest).find_map(|&Checkpoint { last_op, result, .. }| match result {
            UpTo::Image(image) if last_op < mark.0 => Some((last_op, image)),
            _ => None,
        })
    }

    /// Returns the last operation and the sums of the newest checkpoint with sums of this place.
    pub(super) fn sums_of(&self, newest: u32, place: Place) -> Option<(u32, Sums)> {
        self.of(newest).find_map(|&Checkpoint { last_op, result, .. }| match result {
            UpTo::Sums(of, sums) if of == place => Some((last_op, sums)),
            _ => None,
        })
    }
}
