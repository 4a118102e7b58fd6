//! The results of all runs under one setting, merged.

use candide::Level;
use candide::experiments::Timestamps;
use candide_workloads::Consistency;

use crate::any_workload::{AnyWorkload, Variant};
use crate::failure::Failure;
use crate::files::level_name;
use crate::results::{
    Aborted, Hottest, Kind, LogUse, Measurement, Memory, NumberedSlice, Profile, Run, SpeedUp,
    Timeslices, Transactions, median,
};

/// The parameters of a measurement.
pub(super) struct Setting<'a> {
    pub(super) workload: &'a dyn AnyWorkload,
    pub(super) variant: &'a Variant,
    pub(super) threads: usize,
    pub(super) seed: u64,
    pub(super) rate: Option<f64>,
    pub(super) profile: Profile,
    /// The level for which transactions waited; `None` if the database had no log.
    pub(super) level: Option<Level>,
}

impl Setting<'_> {
    /// Merges the results of `runs`, which holds at least one run.
    pub(super) fn measurement(
        &self,
        runs: &[Run],
        memory: Memory,
        consistency: Consistency,
    ) -> Result<Measurement, Failure> {
        let Setting { workload, variant, threads, seed, rate, profile, level } = *self;
        let mut params = workload.params()?;
        params["seed"] = seed.into();
        if let Some(rate) = rate {
            params["rate"] = rate.into();
        }
        let kinds = workload.kinds();
        let counts_stale = variant.finds_stale_commits();
        let mut total = Run::new(kinds.len());
        runs.iter().for_each(|run| total.merge(run));
        let sum = |count: fn(&Kind) -> u64| total.kinds.iter().map(count).sum();
        let tps_runs: Vec<f64> = runs.iter().map(Run::throughput).collect();
        let first_seconds: Vec<f64> =
            runs.iter().filter_map(|run| run.first_second).map(|count| count as f64).collect();
        let slices = runs.iter().enumerate().flat_map(|(index, run)| {
            run.slices
                .iter()
                .map(move |slice| NumberedSlice { run: index + 1, slice: slice.clone() })
        });
        let ended = kinds
            .iter()
            .zip(&total.kinds)
            .filter(|(_, kind)| kind.committed + kind.user_aborted > 0);
        Ok(Measurement {
            workload: workload.name(),
            params,
            variety: String::new(),
            profile,
            protocol: variant.protocol.name(),
            cu: variant.cu,
            ts: variant.ts,
            timestamps: variant.timestamps.map(Timestamps::name),
            opaque: variant.opaque,
            factors: variant.factors.iter().map(|factor| factor.name()).collect(),
            threads,
            duration_s: total.elapsed.as_secs_f64(),
            committed: total.committed(),
            aborted: sum(|kind| kind.aborted),
            user_aborted: sum(|kind| kind.user_aborted),
            throughput_tps: median(&tps_runs),
            tps_runs,
            first_second_tps: (!first_seconds.is_empty()).then(|| median(&first_seconds)),
            speed_up: SpeedUp::of(runs),
            grown_bytes: total.grown_bytes,
            fresh_bytes: total.fresh_bytes,
            log: level.map(|level| LogUse::new(level_name(level), &total)),
            involuntary_switches: total.involuntary_switches,
            core_share: total.core_share,
            ended_early: total.ended_early,
            transactions: ended
                .map(|(&name, kind)| (name, Transactions::new(kind, counts_stale)))
                .collect(),
            timeline: workload.timeline().map(|timeline| Timeslices::new(&timeline, &total.phases)),
            slices: slices.collect(),
            abort_reasons: total.abort_reasons,
            sets: total.sets.averages(counts_stale),
            locks: variant.protocol.locks().then_some(total.locks),
            causes: total.causes.map(|causes| {
                causes
                    .by_frequency()
                    .into_iter()
                    .map(|(cause, count)| Aborted::new(kinds, cause, count))
                    .collect()
            }),
            hottest: total
                .hottest
                .zip(workload.hottest())
                .map(|(probes, row)| Hottest::new(row, &probes)),
            memory,
            consistency,
        })
    }
}
