//! Anomalies: the small, fixed interleavings of the literature, and the result of each under each
//! protocol.
//!
//! Each file has the name of an anomaly, and contains a few scripts. Every protocol runs all
//! scripts. An anomaly must appear if the protocol does not make the promise that the anomaly
//! breaks, and must not appear otherwise. So the documentation claims neither too much nor too
//! little. The results are the table in `docs/correctness.md`.

mod aborted_write;
mod commutative;
mod dirty_scan;
mod drawn;
mod fractured;
mod g0;
mod g1;
mod g2;
mod g_single;
mod judge;
mod long_fork;
mod otv;
mod overlapping_commits;
mod p4;
mod phantom;
mod pmp;
mod predicate_g2;
mod read_only;
mod rows;
mod script;
mod stage;
mod stale_read;
mod table;
mod uncontrolled;
mod zombie;

use super::{by_the_clock, properties, under};
use crate::engine::Protocol;
use crate::protocols::Mvto;
use judge::keeps;
use script::{Anomaly, End, Promise, Run, rows_of};
use table::{Column, Fate};
use uncontrolled::Uncontrolled;

/// All anomalies: first those of Hermitage, in Hermitage's order, and then those of this project.
const ANOMALIES: &[&Anomaly] = &[
    &g0::G0,
    &g1::G1A,
    &g1::G1B,
    &g1::G1C,
    &otv::OTV,
    &pmp::PMP,
    &pmp::PMP_WRITE,
    &p4::P4,
    &g_single::G_SINGLE,
    &g_single::G_SINGLE_PREDICATE,
    &g_single::G_SINGLE_WRITE,
    &g2::G2_ITEM,
    &g2::G2,
    &g2::G2_TWO_EDGES,
    &phantom::PHANTOM_RANGE,
    &phantom::PHANTOM_OWN_SPLIT,
    &phantom::PHANTOM_ABSENT,
    &phantom::PHANTOM_ABSENT_HASHED,
    &phantom::PHANTOM_DELETED,
    &phantom::PHANTOM_NEXT,
    &phantom::PHANTOM_PREVIOUS,
    &predicate_g2::PREDICATE_G2,
    &overlapping_commits::OVERLAPPING_COMMITS,
    &overlapping_commits::HELD_ROW,
    &read_only::READ_ONLY,
    &long_fork::LONG_FORK,
    &commutative::LOST_COMMUTATIVE,
    &aborted_write::ABORTED_WRITE,
    &dirty_scan::DIRTY_SCAN,
    &dirty_scan::SKIPPED_INSERT,
    &fractured::FRACTURED,
    &fractured::FRACTURED_DELETE,
    &stale_read::STALE_READ,
    &zombie::ZOMBIE,
];

fn promises<P: Protocol>(promise: Promise) -> bool {
    match promise {
        Promise::Serializable => true,
        Promise::Strict => P::STRICT,
        Promise::Opaque => P::OPAQUE,
    }
}

/// Runs a script. Asserts that the run keeps every promise of the protocol. Also asserts that the
/// anomaly appears exactly if the protocol does not make the promise in `breaks`, and that the run
/// then breaks this promise.
fn observe<P: Protocol>(anomaly: &Anomaly) -> Fate {
    let run = stage::run::<P>(anomaly);
    let before = rows_of(anomaly.rows);
    let told = || format!("{} under {}: {run:#?}", anomaly.name, properties::<P>().name);
    for promise in Promise::ALL {
        assert!(
            !promises::<P>(promise) || keeps(&run, &before, promise),
            "not {promise:?}: {}",
            told()
        );
    }
    let appears = (anomaly.appears)(&run);
    assert_eq!(appears, !promises::<P>(anomaly.breaks), "{}", told());
    assert!(
        !appears || !keeps(&run, &before, anomaly.breaks),
        "what has appeared breaks no promise: {}",
        told()
    );
    fate(appears, &run)
}

fn fate(appears: bool, run: &Run) -> Fate {
    if appears {
        Fate::Appears
    } else if run.excluded {
        Fate::Excluded
    } else if run.parts.iter().any(|part| part.end == End::Conflict) {
        Fate::Aborted
    } else {
        Fate::Ordered
    }
}

/// Runs all scripts under a protocol.
fn column<P: Protocol>() -> Column {
    assert!(P::STRICT || !P::OPAQUE, "{}: only a strict protocol is called opaque", P::NAME);
    Column {
        name: properties::<P>().name,
        promises: Promise::ALL.map(promises::<P>),
        fates: ANOMALIES.iter().map(|anomaly| observe::<P>(anomaly)).collect(),
    }
}

macro_rules! columns {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        [$($(under::<$protocol, _>($policy, column::<$protocol>)),+),+]
    };
}

#[test]
fn each_protocol_prevents_exactly_its_documented_anomalies() {
    let columns = crate::for_each_protocol!(columns);
    table::compare(ANOMALIES, &columns);
    // The results are the same when the timestamps come from the clock.
    let column = by_the_clock(column::<Mvto>);
    assert!(columns.contains(&column), "{column:?}");
}

/// Without concurrency control, the anomaly of each script appears in at least one of the
/// uncontrolled ways of running it, and the judge notices it.
#[test]
fn each_anomaly_appears_under_protocols_that_do_not_prevent_it() {
    for anomaly in ANOMALIES {
        let before = rows_of(anomaly.rows);
        let runs = Uncontrolled::ALL.map(|uncontrolled| uncontrolled.run(anomaly));
        let appeared: Vec<&Run> = runs.iter().filter(|run| (anomaly.appears)(run)).collect();
        assert!(!appeared.is_empty(), "{}: {runs:#?}", anomaly.name);
        for run in appeared {
            assert!(!keeps(run, &before, anomaly.breaks), "{}: {run:#?}", anomaly.name);
        }
    }
}
