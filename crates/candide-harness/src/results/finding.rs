//! The finding of a command.

/// Results of a check, from the best to the worst; each has an exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// Every demanded property holds.
    Good,
    /// The checker could not decide.
    Unknown,
    /// A property does not hold, or a run has committed nothing.
    Bad,
}

impl Finding {
    /// Returns the exit status of the command.
    pub fn exit_status(self) -> u8 {
        match self {
            Finding::Good => 0,
            Finding::Unknown => 3,
            Finding::Bad => 1,
        }
    }
}
