//! The rule, what may be otherwise in it, and what may not.

/// What a run keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    AsItIs,
    Varied(Variant),
    Broken(Mutant),
}

impl Rule {
    pub fn is(self, mutant: Mutant) -> bool {
        self == Rule::Broken(mutant)
    }

    pub fn varies(self, variant: Variant) -> bool {
        self == Rule::Varied(variant)
    }
}

/// Other forms of the rule, which hold as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Loads the new epoch, reads the cell again, and looks at the others only.
    RereadsAfterEpoch,
    LooksBackwards,
    /// Leaves e0 as it was after a look.
    BaseKept,
    /// Takes the epoch of the version for e0 after a look.
    BaseOfVersion,
    /// Begins with the epoch before the one that was loaded.
    OldPin,
    /// When looks have cost too much: makes the epoch tick, once, and looks; or gives up.
    CostIsBounded,
    /// Fails a look at any lock of others.
    LockFailsLook,
    /// Fails a look at any other version of a row that was peeked at.
    PeeksByVersion,
    /// Commits with an epoch that is loaded after validation.
    EpochAfterValidation,
}

impl Variant {
    pub const ALL: [Variant; 9] = [
        Variant::RereadsAfterEpoch,
        Variant::LooksBackwards,
        Variant::BaseKept,
        Variant::BaseOfVersion,
        Variant::OldPin,
        Variant::CostIsBounded,
        Variant::LockFailsLook,
        Variant::PeeksByVersion,
        Variant::EpochAfterValidation,
    ];
}

/// Defects, each of which must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Loads e0 only when the first read is done.
    BeginAfterRead,
    /// Takes a version of the epoch e0 as it is.
    EqualEpochIsFree,
    /// Reads through INSTALL.
    ReadsInstalling,
    /// Tells of a row without asking for its epoch.
    PeekIsFree,
    /// Takes what it holds as it is.
    HoldReplacesLook,
    /// Does not look at cells that the reader holds itself.
    HeldUnlooked,
    /// Waits for a lock that is only held.
    HeldIsAwaited,
    /// Asks only the last of several cells for its epoch.
    LastOfBatchDecides,
    /// Looks at nothing.
    NoLook,
    /// Does not look at the new cell.
    NewUnlooked,
    /// Does not look at what was taken as it was.
    OldUnlooked,
    /// Does not look at nodes.
    NodesUnlooked,
    /// Does not look at rows that were peeked at.
    PeeksUnlooked,
    /// Asks of a row that was peeked at only whether it is there as before.
    PeeksByExistence,
    /// Does not mind INSTALL in a look.
    InstallPassesLook,
    /// Takes INSTALL in a cell that it has staged for its own.
    StagedPassesLook,
    /// Loads E1 after the look.
    EpochAfterLook,
    /// Takes the epoch for e0 whenever something is shown.
    BaseWithoutLook,
    /// Takes the next epoch for E1, which has not begun.
    TickAssumed,
    /// Makes the epoch tick after the look, and loads E1 then.
    TickAfterLook,
    /// Looks at nothing when it has made the epoch tick.
    TickReplacesLook,
    /// Does not look at the cell of a record that it has linked itself.
    OwnLinkUnwatched,
    /// Lets a link of its own fail its look at the node.
    OwnLinkFailsLook,
    /// Loads the epoch of a commit before the first lock.
    EpochBeforeLocks,
    /// Loads it after the first lock.
    EpochBetweenLocks,
    /// Links an inserted record only when it has loaded the epoch.
    LinkAfterEpoch,
    /// Raises INSTALL in held cells when it has validated.
    HeldInstallsLate,
    /// Validates nothing of what the reader has seen, which was consistent.
    OpaqueReadsUnvalidated,
    /// Excuses INSTALL of others in validation.
    OthersInstallExcused,
    /// Does not excuse its own INSTALL in validation.
    OwnInstallUnexcused,
    /// Buries records without asking for the horizon.
    BuriedEarly,
}

impl Mutant {
    pub const ALL: [Mutant; 31] = [
        Mutant::BeginAfterRead,
        Mutant::EqualEpochIsFree,
        Mutant::ReadsInstalling,
        Mutant::PeekIsFree,
        Mutant::HoldReplacesLook,
        Mutant::HeldUnlooked,
        Mutant::HeldIsAwaited,
        Mutant::LastOfBatchDecides,
        Mutant::NoLook,
        Mutant::NewUnlooked,
        Mutant::OldUnlooked,
        Mutant::NodesUnlooked,
        Mutant::PeeksUnlooked,
        Mutant::PeeksByExistence,
        Mutant::InstallPassesLook,
        Mutant::StagedPassesLook,
        Mutant::EpochAfterLook,
        Mutant::BaseWithoutLook,
        Mutant::TickAssumed,
        Mutant::TickAfterLook,
        Mutant::TickReplacesLook,
        Mutant::OwnLinkUnwatched,
        Mutant::OwnLinkFailsLook,
        Mutant::EpochBeforeLocks,
        Mutant::EpochBetweenLocks,
        Mutant::LinkAfterEpoch,
        Mutant::HeldInstallsLate,
        Mutant::OpaqueReadsUnvalidated,
        Mutant::OthersInstallExcused,
        Mutant::OwnInstallUnexcused,
        Mutant::BuriedEarly,
    ];
}
