//! Results that were never measured, for tests of the page.

use std::collections::BTreeMap;

use candide_workloads::Consistency;

use crate::registry::Choices;
use crate::results::{Footprint, Machine, Measurement, Memory, Profile, Report, Transactions};

/// The setting and throughput of a made-up measurement.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// The protocol's index in the registry.
    pub(crate) protocol: usize,
    pub(crate) cu: bool,
    pub(crate) ts: bool,
    pub(crate) threads: usize,
    /// The median throughput of three runs.
    pub(crate) tps: f64,
}

/// Returns the measurement of `workload` under `sample`.
pub(crate) fn measurement(workload: &str, sample: Sample) -> Measurement {
    let Choices(all) = "all".parse().expect("the list of all");
    let Sample { protocol, cu, ts, threads, tps } = sample;
    let kind = Transactions {
        committed: 6,
        aborted: 2,
        user_aborted: 1,
        p50_us: 1.0,
        p99_us: 2.0,
        p999_us: 3.0,
        max_us: 4.0,
        sets: None,
    };
    Measurement {
        variety: String::new(),
        workload: workload.to_string(),
        params: serde_json::json!({ "rows": 2000, "seed": 1 }),
        profile: Profile::Strict,
        protocol: all[protocol].name(),
        cu,
        ts,
        timestamps: None,
        opaque: None,
        factors: Vec::new(),
        threads,
        duration_s: 0.6,
        ended_early: false,
        committed: 6,
        aborted: 2,
        user_aborted: 1,
        throughput_tps: tps,
        tps_runs: vec![tps * 0.99, tps, tps * 1.01],
        first_second_tps: None,
        speed_up: None,
        involuntary_switches: None,
        core_share: Some(0.99),
        grown_bytes: 3 << 20,
        fresh_bytes: 1 << 20,
        abort_reasons: BTreeMap::from([("locked", 2)]),
        sets: None,
        locks: None,
        log: None,
        causes: None,
        hottest: None,
        transactions: BTreeMap::from([("<kind>", kind)]),
        timeline: None,
        slices: Vec::new(),
        memory: Memory {
            footprint: Footprint { memory_bytes: 1 << 21, rss_bytes: None },
            huge_page_bytes: None,
        },
        consistency: Consistency { checked: 2, ..Consistency::default() },
    }
}

/// Returns a report of `results`.
pub(crate) fn report(results: Vec<Measurement>) -> Report {
    Report::new(Machine::inspect(2), vec!["a <note>".to_string()], results, false).expect("results")
}
