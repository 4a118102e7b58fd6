//! An open directory, of this operating system.

#[cfg(unix)]
pub(super) use super::unix::Handle;
#[cfg(windows)]
pub(super) use super::windows::Handle;
