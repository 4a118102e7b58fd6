//! What a check found.

/// The invariants that were examined, and a sentence for each that does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Consistency {
    /// How many invariants were examined.
    pub checked: usize,
    /// One sentence for each that failed.
    pub failed: Vec<String>,
    /// What else a reader of the results has to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Consistency {
    /// Adds what another check found.
    pub fn merge(&mut self, other: Consistency) {
        self.checked += other.checked;
        self.failed.extend(other.failed);
        self.notes.extend(other.notes);
    }

    /// Examines one invariant; `failure` says what is wrong if it does not hold.
    pub(crate) fn expect(&mut self, holds: bool, failure: impl FnOnce() -> String) {
        self.checked += 1;
        if !holds {
            self.failed.push(failure());
        }
    }
}
