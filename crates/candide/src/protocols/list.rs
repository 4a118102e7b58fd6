//! The list of protocols, with the default. The command, its tests, the costs and the engine's
//! tests expand it.

/// Expands a macro with the list of protocols, each with the policies that its databases may be
/// given: first those whose transactions overlap, then those that run one transaction at a time.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_protocol {
    ($expand:ident) => {
        $expand! {
            overlapping $crate::Occ: ();
            overlapping $crate::TicToc: ();
            overlapping $crate::Mvcc: ();
            overlapping $crate::Mvto: ();
            exclusive $crate::Serial: $crate::Exclusion::OneSession, $crate::Exclusion::GlobalLock;
        }
    };
}

/// The protocol of databases that do not name one.
pub type DefaultProtocol = super::occ::Occ;
