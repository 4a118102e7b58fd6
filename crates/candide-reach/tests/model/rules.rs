//! The protocol as it is, and mutants that each break one rule.

/// A rule that is broken. The names say what happens instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The floors of earlier generations are read, not sealed.
    NoSeal,
    /// A leader deletes what its acknowledged blocks cover, without a floor.
    DeletesBeforeFloor,
    DeletesEnds,
    AcknowledgesOverGap,
    LeadsBeforeClosed,
    ClosesOneGeneration,
    /// "The name is taken" counts as the leader's own object.
    ExistsIsSuccess,
    /// A claim without an answer counts as created.
    SilenceIsSuccess,
    /// A reader goes on behind an end, whatever the next generation names.
    FollowsAnyEnd,
    /// The newest floor is that of a list, which may lack some.
    BelievesList,
    /// A leader that has no answer offers another block for the same place.
    OffersOtherBytes,
    /// Sealing takes only the floors of the generations that it seals.
    ForgetsOlderFloor,
    /// A standby that is promoted goes on from its own position, whatever the floors cover.
    PromotesFromAnywhere,
    /// A directory is opened as leader although another has claimed.
    ClaimsAgainstAnother,
    /// Likewise, and the blocks that only the directory has are sent behind those of others.
    MergesDiverged,
    /// A directory sends all that it had no acknowledgement for, without a look at the place.
    SendsTailUnread,
}

/// All mutants.
pub const MUTANTS: [Mutant; 16] = [
    Mutant::NoSeal,
    Mutant::DeletesBeforeFloor,
    Mutant::DeletesEnds,
    Mutant::AcknowledgesOverGap,
    Mutant::LeadsBeforeClosed,
    Mutant::ClosesOneGeneration,
    Mutant::ExistsIsSuccess,
    Mutant::SilenceIsSuccess,
    Mutant::FollowsAnyEnd,
    Mutant::BelievesList,
    Mutant::OffersOtherBytes,
    Mutant::ForgetsOlderFloor,
    Mutant::PromotesFromAnywhere,
    Mutant::ClaimsAgainstAnother,
    Mutant::MergesDiverged,
    Mutant::SendsTailUnread,
];

/// The size of a model, and the rule that is broken.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The new blocks that the leader of each generation may write, from generation 1.
    pub blocks: [u8; 3],
    /// The number of creations that a leader may have under way.
    pub window: u8,
    /// The number of times that the primary may crash and come back.
    pub restarts: u8,
    /// Whether a process may be promoted: the newcomer, the standby.
    pub promotes: [bool; 2],
    /// Whether requests may arrive again after they were answered.
    pub twice: bool,
    /// Whether requests may get lost.
    pub losses: bool,
    /// The largest generation whose leader makes floors.
    pub floors: u8,
    /// The number of states met last of which the search takes one; 1 goes deepest.
    pub breadth: usize,
    /// Where the search turns.
    pub seed: u64,
    pub mutant: Option<Mutant>,
}

impl Rules {
    pub fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Returns whether a directory claims although another process has led.
    pub fn claims_against(&self) -> bool {
        self.is(Mutant::ClaimsAgainstAnother) || self.is(Mutant::MergesDiverged)
    }
}
