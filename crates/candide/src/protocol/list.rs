//! The list of protocols, which the command, its tests, the costs and the engine's tests expand.

/// Expands a macro with the list of protocols: those whose transactions overlap, then those that
/// run one transaction at a time; each with the policies that its databases may be given.
///
/// The macro is called by its name, with what follows that in brackets, if there is something,
/// before the list.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_protocol {
    ($expand:ident $($arguments:tt)*) => {
        $expand! {
            $($arguments)*
            overlapping {
                $crate::Occ: ();
                $crate::TicToc: ();
                $crate::Mvcc: ();
                $crate::Mvto: ();
            }
            exclusive {
                $crate::Serial: $crate::Exclusion::OneSession, $crate::Exclusion::GlobalLock;
            }
        }
    };
}
