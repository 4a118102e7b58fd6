//! The ways to open a file.

/// The purpose for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// For reading, if it is there.
    Read,
    /// For reading and writing, if it is there.
    Change,
    /// For reading and writing. It is created if it is missing. That is how `LOCK` is opened.
    ChangeOrCreate,
    /// For reading and writing. It is created if it is missing, or else becomes empty.
    Replace,
}
