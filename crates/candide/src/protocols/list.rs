//! The list of protocols, and the default. The command, the command's tests, the measurement of
//! costs and the engine's tests expand the list.

/// Expands the macro `expand` with the list of protocols. If the caller writes arguments after the
/// name of `expand`, these arguments come first. Then follow the protocols, each with the policies
/// that its databases may be given. Each policy comes with a relation of its transactions to one
/// another, and with the name of its tests.
///
/// The relation is one of these:
/// * `overlapping`: transactions overlap.
/// * `versioned`: transactions overlap, and read from versions.
/// * `exclusive`: transactions run one at a time, in any number of sessions.
/// * `one_session`: transactions run in only one session.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_protocol {
    ($expand:ident $(, $($given:tt)+)?) => {
        $expand! {
            $($($given)+)?
            $crate::Occ: overlapping occ = $crate::Policies::of($crate::Policy::Optimistic),
                overlapping no_wait = $crate::Policies::of($crate::Policy::NoWait),
                overlapping blind_die = $crate::Policies::of($crate::Policy::BlindDie),
                overlapping wait_die = $crate::Policies::of($crate::Policy::WaitDie),
                overlapping dreadlock = $crate::Policies::of($crate::Policy::Dreadlock),
                overlapping adaptive = $crate::Policies::of($crate::Policy::Adaptive),
                overlapping swiss = $crate::Policies::of($crate::Policy::Swiss),
                overlapping pcc = $crate::Policies::of($crate::Policy::Pessimistic),
                overlapping mocc = $crate::Policies::of($crate::Policy::Mocc),
                overlapping hybrid = $crate::Policies::of($crate::Policy::Hybrid),
                overlapping mixed = $crate::Policies::mixed();
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

/// The protocol of a database whose type names no protocol.
pub type DefaultProtocol = Occ;
