//! The versions that a transaction can have seen.

/// The times that determine which deletes a transaction has seen when it found no record, and which
/// other versions the transaction can have seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    pub(super) ended: u64,
    /// The time to which the transaction looked back; `None` if it did not look back. Of each unit,
    /// the transaction saw the highest version not above this time.
    pub(super) as_of: Option<u64>,
}
