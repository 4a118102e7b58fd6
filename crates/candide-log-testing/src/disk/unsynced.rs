//! A state with changes that are durable, and with others that may survive a crash or not.

/// The target of changes: the directory, or a file.
pub(super) trait State {
    /// A change of the state.
    type Change;

    /// Applies a change.
    fn apply(&mut self, change: &Self::Change);
}

/// A durable state, and the later changes.
#[derive(Clone, Debug)]
pub(super) struct Unsynced<S: State> {
    pub(super) durable: S,
    /// The first change that is not durable, and all later changes, in order.
    pub(super) changes: Vec<Later<S::Change>>,
}

/// A change that is not durable, or comes after such a change.
#[derive(Clone, Debug)]
pub(super) struct Later<C> {
    pub(super) change: C,
    pub(super) fate: Fate,
}

/// The effect of a crash on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The change may survive or not. The next sync makes it durable.
    Loose,
    /// The change may survive or not, and no sync will make it durable, because one has failed.
    Adrift,
    /// The change is durable, but an earlier one is not.
    Durable,
}

impl<S: State> Unsynced<S> {
    /// Returns a state that is durable.
    pub(super) fn new(durable: S) -> Self {
        Self { durable, changes: Vec::new() }
    }

    /// Adds a change that is not synced.
    pub(super) fn push(&mut self, change: S::Change) {
        self.changes.push(Later { change, fate: Fate::Loose });
    }

    /// Makes the changes durable, except those whose sync has failed.
    pub(super) fn sync(&mut self) {
        self.turn_loose_into(Fate::Durable);
        let is_settled = |later: &Later<S::Change>| later.fate == Fate::Durable;
        let settled = self.changes.iter().take_while(|later| is_settled(later)).count();
        for later in self.changes.drain(..settled) {
            self.durable.apply(&later.change);
        }
    }

    /// Notes that a sync has failed: the changes since the last one are never known to be durable.
    pub(super) fn fail_sync(&mut self) {
        self.turn_loose_into(Fate::Adrift);
    }

    fn turn_loose_into(&mut self, fate: Fate) {
        for later in &mut self.changes {
            if later.fate == Fate::Loose {
                later.fate = fate;
            }
        }
    }
}
