//! All results of an invocation.

use serde::Serialize;

use crate::failure::Failure;
use crate::machine::Machine;
use crate::measurement::Measurement;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// What a reader must know beside the figures: what was left out, what was not checked.
    pub(crate) notes: Vec<String>,
    pub(crate) results: Vec<Measurement>,
}

impl Report {
    pub(crate) fn to_json(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Whether every invariant that was examined held.
    pub(crate) fn is_consistent(&self) -> bool {
        self.results.iter().all(|result| result.consistency.failed.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Bench, Cli, Command};
    use crate::driver::Run;
    use crate::measurement::{Memory, Setting};
    use crate::page;
    use crate::plan::Plan;

    /// A report of one measurement that `failed`.
    fn report(failed: &[&str]) -> Report {
        let Cli { command } = Cli::parse_from(["candide", "bench", "smallbank"]);
        let Command::Bench(Bench::SmallBank(args)) = command else { panic!("asked for SmallBank") };
        let plan = Plan::new(&args.common, 2).expect("a plan");
        let workload = args.workload();
        let setting = Setting { workload: &workload, common: &args.common, case: &plan.cases[0], threads: 1 };
        let mut consistency = candide_workloads::Consistency { checked: 2, ..Default::default() };
        consistency.failed.extend(failed.iter().map(|failure| failure.to_string()));
        let result = Measurement::new(&setting, &[Run::new(6)], Memory::now(0), consistency).expect("serializes");
        Report { machine: Machine::inspect(2), notes: Vec::new(), results: vec![result] }
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
}
