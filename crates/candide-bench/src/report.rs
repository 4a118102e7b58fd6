//! All results of an invocation.

use serde::Serialize;

use crate::failure::Failure;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::measurement::{Measurement, plain};
use crate::table::{grouped, label};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// What a reader must know beside the figures: what was left out, what was not checked.
    pub(crate) notes: Vec<String>,
    /// Whether Ctrl-C ended it before everything that was asked for was measured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended_early: bool,
    /// The published figure that it was made after, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) figure: Option<Figure>,
    pub(crate) results: Vec<Measurement>,
}

impl Report {
    /// Of all results, or of those that there were when Ctrl-C was pressed: then it is an error if there are none.
    pub(crate) fn new(
        machine: Machine,
        mut notes: Vec<String>,
        mut results: Vec<Measurement>,
        ended_early: bool,
    ) -> Result<Self, Failure> {
        if ended_early {
            if results.is_empty() {
                return Err(Failure::Interrupted);
            }
            notes.push("ended early, by Ctrl-C: this is what was measured by then".to_string());
        }
        let varieties: Vec<String> = results.iter().map(|result| variety(result, &results)).collect();
        results.iter_mut().zip(varieties).for_each(|(result, variety)| result.variety = variety);
        notes.extend(results.iter().filter_map(unattained));
        Ok(Report { machine, notes, ended_early, figure: None, results })
    }

    /// Where latencies begin and end: in all results alike.
    pub(crate) fn latency_span(&self) -> &'static str {
        self.results.first().map_or("", Measurement::latency_span)
    }

    pub(crate) fn to_json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Whether every invariant that was examined held.
    pub(crate) fn is_consistent(&self) -> bool {
        self.results.iter().all(|result| result.consistency.failed.is_empty())
    }
}

/// Below this part of the rate that was asked for, it is said that it was not attained.
const ATTAINED: f64 = 0.98;

/// Says that fewer transactions were begun than were asked for, if so.
fn unattained(result: &Measurement) -> Option<String> {
    let asked = result.params.get("rate")?.as_f64()?;
    let ended = (result.committed + result.user_aborted) as f64 / result.duration_s;
    (ended < asked * ATTAINED).then(|| {
        let (what, asked, ended) = (label(result), grouped(asked), grouped(ended));
        format!("{what}: {asked} transactions a second were asked for and {ended} ended; those that were not begun are in no latency")
    })
}

/// The knobs of a result that others of its workload have turned otherwise.
fn variety(result: &Measurement, results: &[Measurement]) -> String {
    let namesakes = || results.iter().filter(|other| other.workload == result.workload);
    let knobs = result.params.as_object().into_iter().flatten();
    let differing = knobs.filter(|(knob, value)| namesakes().any(|other| other.params.get(knob) != Some(value)));
    differing.map(|(knob, value)| format!(", {} {}", knob.replace('_', " "), plain(value))).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Bench, Cli, Command};
    use crate::driver::Run;
    use crate::measurement::{Memory, Setting};
    use crate::page;
    use crate::page::sample::{Sample, measurement};
    use crate::plan::Plan;

    /// A report of one measurement that `failed`.
    fn report(failed: &[&str]) -> Report {
        let Cli { command } = Cli::parse_from(["candide", "bench", "smallbank"]);
        let Command::Bench(workload) = command else { panic!("asked for a benchmark") };
        let Bench::SmallBank(args) = *workload else { panic!("asked for SmallBank") };
        let plan = Plan::new(&args.common, 2).expect("a plan");
        let workload = args.workload();
        let variant = &plan.cases[0].variant;
        let setting =
            Setting { subject: &workload, variant, threads: 1, seed: 1, rate: None, profile: args.common.profile };
        let mut consistency = candide_workloads::Consistency { checked: 2, ..Default::default() };
        consistency.failed.extend(failed.iter().map(|failure| failure.to_string()));
        let result = Measurement::new(&setting, &[Run::new(6)], Memory::now(0), consistency).expect("serializes");
        Report::new(Machine::inspect(2), Vec::new(), vec![result], false).expect("results")
    }

    #[test]
    fn one_failed_invariant_makes_the_report_inconsistent_and_is_shown() {
        assert!(report(&[]).is_consistent());
        let report = report(&["1 < 2 </script> is no longer true"]);
        assert!(!report.is_consistent());
        let page = page::render(&report).expect("renders");
        assert!(page.contains("1 &lt; 2 &lt;/script&gt; is no longer true"), "shown, and no markup");
        assert_eq!(page.matches("</script>").count(), 1, "the JSON cannot end its script");
    }

    #[test]
    fn what_has_the_same_name_is_told_by_its_knobs() {
        let of = |workload: &str, params: serde_json::Value| Measurement {
            params,
            ..measurement(workload, Sample { protocol: 0, threads: 1, cu: true, ts: true, tps: 1.0 })
        };
        let results = [
            of("tpcc", serde_json::json!({ "warehouses": 1, "order_ids": "once", "items": 5 })),
            of("tpcc", serde_json::json!({ "warehouses": 2, "order_ids": "district", "items": 5 })),
            of("ycsb-a", serde_json::json!({ "warehouses": 3 })),
        ];
        let varieties = results.each_ref().map(|result| variety(result, &results));
        assert_eq!(varieties, [", order ids once, warehouses 1", ", order ids district, warehouses 2", ""]);
    }
}
