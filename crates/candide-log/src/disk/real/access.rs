//! The ways to open a file.

/// The purpose for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// The file is opened for reading, if it exists.
    Read,
    /// The file is opened for reading and writing, if it exists.
    Change,
    /// The file is opened for reading and writing. A missing file is created. `LOCK` is opened so.
    ChangeOrCreate,
    /// The file is opened for reading and writing. A missing file is created, and an existing one
    /// becomes empty.
    Replace,
}
