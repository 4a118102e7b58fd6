//! What workers share.

use candide::Protocol;

use super::knobs::Wikipedia;
use super::rows::PageName;
use super::tables::{Numbers, Tables};

/// The state that workers share.
pub(super) struct Site<P: Protocol> {
    pub(super) tables: Tables<P>,
    pub(super) numbers: Numbers,
    /// The names of pages. The name of page number n is at index n - 1.
    pub(super) names: Box<[PageName]>,
    pub(super) knobs: Wikipedia,
}
