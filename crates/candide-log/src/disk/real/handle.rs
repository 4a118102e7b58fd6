//! An open directory, of the operating system at hand.

#[cfg(unix)]
pub(super) use super::unix::Handle;
#[cfg(windows)]
pub(super) use super::windows::Handle;
