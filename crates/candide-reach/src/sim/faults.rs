//! The faults of a simulated place.

#![forbid(unsafe_code)]

/// How often each fault occurs, in percent of the calls. The default is none.
///
/// The first six are what a place may do. The others break what a place promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A request gets lost, and there is no answer.
    pub lost: u8,
    /// A request is executed, and its answer gets lost.
    pub unanswered: u8,
    /// A request is executed at some later call, and there is no answer.
    pub late: u8,
    /// A request is executed, and once more at some later call.
    pub twice: u8,
    /// A list is as it was some calls ago.
    pub old_list: u8,
    /// A read does not find an object that exists.
    pub missed: u8,
    /// A read returns bytes of which one bit is wrong.
    pub flipped: u8,
    /// A creation replaces the object that has the name, and says that it was new.
    pub unconditional: u8,
}

impl Faults {
    /// No faults.
    pub const NONE: Faults = Faults {
        lost: 0,
        unanswered: 0,
        late: 0,
        twice: 0,
        old_list: 0,
        missed: 0,
        flipped: 0,
        unconditional: 0,
    };
}
