//! The roles of maps and stores in a comparison.

use serde::Serialize;

/// The role of a map in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Candide, in one of several ways of use.
    Candide,
    /// A peer. Candide is compared with the best of the peers.
    Peer,
    /// A yardstick, for orientation only.
    Yardstick,
}
