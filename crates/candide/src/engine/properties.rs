//! The properties of databases, by protocol and policy.

#![forbid(unsafe_code)]

use crate::timestamps::Timestamps;
use std::fmt;

/// The properties of a database, which depend on its protocol and on the policy with which it was
/// built.
#[derive(Clone, Copy)]
pub struct Properties {
    /// The name on the command line: the protocol's name, or the policy's name if the protocol has
    /// several policies.
    pub name: &'static str,
    /// [`Protocol::STRICT`](super::Protocol::STRICT).
    pub strict: bool,
    /// [`Protocol::OPAQUE`](super::Protocol::OPAQUE).
    pub opaque: bool,
    /// [`Protocol::TIMESTAMPS`](super::Protocol::TIMESTAMPS).
    pub(crate) timestamps: &'static [Timestamps],
    /// Whether there may be only one session at a time.
    pub one_session: bool,
    pub(crate) cell_words: usize,
    pub(crate) node_words: usize,
    pub(crate) version_words: usize,
    pub(crate) short_version_words: usize,
    pub(crate) spare_words: usize,
    pub(crate) applies_at_once: bool,
    pub(crate) keeps_deleted_index: bool,
    /// [`Protocol::OPAQUE_BY_LOOKS`](super::Protocol::OPAQUE_BY_LOOKS).
    pub(crate) opaque_by_looks: bool,
    /// [`Protocol::COMMITS_STALE`](super::Protocol::COMMITS_STALE).
    #[cfg_attr(
        not(any(test, feature = "experiments")),
        expect(dead_code, reason = "for experiments")
    )]
    pub(crate) commits_stale: bool,
    /// [`Protocol::READABLE_CUT`](super::Protocol::READABLE_CUT).
    pub(crate) readable_cut: bool,
    /// [`Protocol::LATE_ROWS`](super::Protocol::LATE_ROWS).
    pub(crate) late_rows: bool,
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Properties")
            .field("name", &self.name)
            .field("strict", &self.strict)
            .field("opaque", &self.opaque)
            .field("one_session", &self.one_session)
            .finish_non_exhaustive()
    }
}

impl Properties {
    /// Returns whether the protocol keeps old versions of rows, for readers of snapshots.
    pub fn keeps_versions(&self) -> bool {
        self.version_words > 0
    }
}
