//! The list of protocols, with the default. The command, its tests, the costs and the engine's
//! tests expand it.

/// Expands a macro with the list of protocols. The macro is given first the arguments that the
/// caller writes behind its name. Each protocol follows with the policies that its databases may be
/// given; before each policy come the relation of its transactions to one another and the name of
/// its tests.
///
/// Transactions are `overlapping`; or `versioned` (they overlap and read from versions), or
/// `exclusive` (they run one at a time in any number of sessions), or of `one_session`.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_protocol {
    ($expand:ident $(, $($given:tt)+)?) => {
        $expand! {
            $($($given)+)?
            $crate::Occ: overlapping occ = ();
            $crate::TicToc: overlapping tictoc = ();
            $crate::Mvcc: versioned mvcc = ();
            $crate::Mvto: versioned mvto = ();
            $crate::Serial: one_session serial = $crate::Exclusion::OneSession,
                exclusive global_lock = $crate::Exclusion::GlobalLock;
        }
    };
}

pub use super::mvcc::Mvcc;
pub use super::mvto::Mvto;
pub use super::occ::Occ;
pub use super::serial::{Exclusion, Serial};
pub use super::tictoc::TicToc;

/// The protocol of databases that do not name one.
pub type DefaultProtocol = Occ;
