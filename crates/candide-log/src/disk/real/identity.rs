//! The identity of directories.

/// The identity of a directory, which is the same for every path to the directory: on Unix the
/// device and the inode, on Windows the canonical path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    #[cfg(unix)]
    pub(super) device: u64,
    #[cfg(unix)]
    pub(super) inode: u64,
    #[cfg(windows)]
    pub(super) path: std::path::PathBuf,
}
