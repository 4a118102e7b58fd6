//! Schedules that papers have drawn to compare protocols, and the transactions that commit in them
//! under each protocol: with one timestamp for each row (coarse), and with one for each column
//! group (fine).

use super::script::{End, Op, Run, T1, T2, Who};
use super::stage::play;
use crate::engine::Protocol;
use crate::tests::{by_the_clock, properties, under};
use Ending::{Both, First, InTurn, Second};

/// "Timestamp Granularity in OCC", Figure 1, as its section 3.4 finds it in TPC-C: an order reads
/// the tax of a district (the cold value of row 1), while a payment changes the district's balance
/// (the value of row 1). Row 2 represents the tables that only the order writes.
const GRANULARITY: &[(Who, Op)] = &[
    (T1, Op::ReadCold(1)),
    (T2, Op::Add(1, 5)),
    (T1, Op::Add(2, 1)),
    (T2, Op::Commit),
    (T1, Op::Commit),
];

/// "Opportunities for Optimism", Figure 3: T1 ends after T2, but can come before it, since T2 has
/// only replaced what T1 had read. T1 writes nothing, as MVCC can read versions of the past, but
/// not write them.
const LATE_READER: &[(Who, Op)] = &[
    (T1, Op::Read(1)),
    (T2, Op::Set(1, 11)),
    (T2, Op::Commit),
    (T1, Op::Read(2)),
    (T1, Op::Commit),
];

const ROWS: &[(u64, i64)] = &[(1, 10), (2, 20), (3, 30)];

/// The commits of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Both,
    /// Both transactions commit, but the second could begin only after the first had ended.
    InTurn,
    /// T2 aborts.
    First,
    /// T1 aborts.
    Second,
}

/// The endings under a protocol: of [`GRANULARITY`] coarse, coarse on a row 1 that others have read
/// at a later time, and fine; of [`LATE_READER`] coarse and fine.
type Endings = [Ending; 5];

/// Under TicToc, T1 of Figure 1 can come before T2 only if the version that it has read is known to
/// be valid for longer than the version that it replaces. Otherwise it would have to extend the
/// former, which T2 has replaced.
#[rustfmt::skip]
const ENDINGS: &[(&str, Endings)] = &[
    //                 Figure 1:                Figure 3:
    //                 coarse  read    fine     coarse  fine
    ("occ",           [Second, Second, Both,    Second, Second]),
    ("2pl-no-wait",   [First,  First,  Both,    First,  First]),
    ("2pl-blind-die", [First,  First,  Both,    First,  First]),
    ("2pl-wait-die",  [First,  First,  Both,    First,  First]),
    ("2pl-dreadlock", [First,  First,  Both,    First,  First]),
    ("adaptive",      [Second, Second, Both,    Second, Second]),
    ("swiss",         [Second, Second, Both,    Second, Second]),
    ("pcc",           [First,  First,  Both,    First,  First]),
    ("mocc",          [Second, Second, Both,    Second, Second]),
    ("hybrid",        [Second, Second, Both,    Second, Second]),
    ("deferred-2pl",  [Second, Second, Both,    Second, Second]),
    ("pipelined",     [Second, Second, Both,    Second, Second]),
    ("mixed",         [Second, Second, Both,    Second, Second]),
    ("tictoc",        [Second, Both,   Both,    Both,   Both]),
    ("mvcc",          [Second, Second, Both,    Both,   Both]),
    ("mvto",          [Second, Second, Both,    Both,   Both]),
    ("serial",        [InTurn, InTurn, InTurn,  InTurn, InTurn]),
    ("global-lock",   [InTurn, InTurn, InTurn,  InTurn, InTurn]),
];

fn ending(run: &Run) -> Ending {
    match [T1, T2].map(|who| run.parts[who.0].end == End::Committed) {
        [true, true] if run.excluded => InTurn,
        [true, true] => Both,
        [true, false] => First,
        [false, true] => Second,
        [false, false] => panic!("one of two transactions commits: {run:#?}"),
    }
}

/// Plays the schedules under a protocol.
fn endings<P: Protocol>() -> (&'static str, Endings) {
    let play_on =
        |read: &[u64], script, splitting| ending(&play::<P>((ROWS, read), script, splitting));
    let endings = [
        play_on(&[], GRANULARITY, false),
        play_on(&[1], GRANULARITY, false),
        play_on(&[], GRANULARITY, true),
        play_on(&[], LATE_READER, false),
        play_on(&[], LATE_READER, true),
    ];
    (properties::<P>().name, endings)
}

macro_rules! all_endings {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        [$($(under::<$protocol, _>($policy, endings::<$protocol>)),+),+]
    };
}

#[test]
fn drawn_schedules_end_as_the_papers_of_the_protocols_predict() {
    let found = crate::for_each_protocol!(all_endings);
    assert_eq!(found.as_slice(), ENDINGS, "{found:#?}");
    assert!(found.contains(&by_the_clock(endings::<crate::Mvto>)));
}
