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
            $crate::Occ: overlapping occ =
                    $crate::policy::Policies::of($crate::policy::Policy::Optimistic),
                overlapping no_wait = $crate::policy::Policies::of($crate::policy::Policy::NoWait),
                overlapping blind_die =
                    $crate::policy::Policies::of($crate::policy::Policy::BlindDie),
                overlapping wait_die =
                    $crate::policy::Policies::of($crate::policy::Policy::WaitDie),
                overlapping dreadlock =
                    $crate::policy::Policies::of($crate::policy::Policy::Dreadlock),
                overlapping adaptive =
                    $crate::policy::Policies::of($crate::policy::Policy::Adaptive),
                overlapping swiss = $crate::policy::Policies::of($crate::policy::Policy::Swiss),
                overlapping pcc = $crate::policy::Policies::of($crate::policy::Policy::Pessimistic),
                overlapping mocc = $crate::policy::Policies::of($crate::policy::Policy::Mocc),
                overlapping hybrid = $crate::policy::Policies::of($crate::policy::Policy::Hybrid),
                overlapping deferred_2pl =
                    $crate::policy::Policies::of($crate::policy::Policy::DeferredTwoPhase),
                overlapping pipelined =
                    $crate::policy::Policies::of($crate::policy::Policy::Pipelined),
                overlapping mixed = $crate::policy::Policies::mixed();
            $crate::TicToc: overlapping tictoc = ();
            $crate::Mvcc: versioned mvcc = ();
            $crate::Mvto: versioned mvto = ();
            $crate::Serial: one_session serial = $crate::protocols::Exclusion::OneSession,
                exclusive global_lock = $crate::protocols::Exclusion::GlobalLock;
        }
    };
}

#[doc(inline)]
pub use super::{mvcc::Mvcc, mvto::Mvto, occ::Occ, serial::Serial, tictoc::TicToc};

/// The protocol of a database whose type names no protocol.
pub type DefaultProtocol = Occ;
