//! `candide check`: records the operations of transactions, or the values that clients receive, and
//! lets a checker judge the history.

use std::time::{SystemTime, UNIX_EPOCH};

use candide_compiled::banks::recorded::smallbank;
use candide_compiled::keys::recorded::{long_scan, shifting, ycsb, ycsb_joint};
use candide_compiled::random::asked::{lists, registers};
use candide_compiled::random::recorded::random;
use candide_compiled::tpcc::recorded::tpcc;
use candide_compiled::websites::recorded::{rubis, wikipedia};
use candide_harness::check::{
    Claim, Clients, DatabaseOptions, Finding, Recordable, Rules, Verdict, judge_file, record,
};
use candide_harness::{Agenda, Choice, Choices, Failure, interrupt, output, unconcerned};
use candide_workloads::random::Random;
use candide_workloads::rubis::Rubis;
use candide_workloads::smallbank::SmallBank;
use candide_workloads::tpcc::Tpcc;
use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::wikipedia::Wikipedia;
use candide_workloads::ycsb::{Mode as Mix, Verify, Ycsb};

use crate::cli::{AnyWorkload, CheckArgs, CheckMode, Switch};
use crate::ending::Ending;

/// Runs the check and prints its findings. After Ctrl-C, the findings are about the history
/// recorded so far.
pub(crate) fn run(args: &CheckArgs) -> Result<Ending, Failure> {
    if let Some(path) = &args.file {
        let verdict = judge_file(path, args.claim())?;
        let name = match path.as_os_str() == "-" {
            true => "standard input".to_string(),
            false => path.display().to_string(),
        };
        output::print(|out| verdict.print(&name, out))?;
        return Ok(Ending { finding: verdict.finding(), early: false });
    }
    if args.strict && !args.past.is_zero() {
        let words = "read-only transactions that see the past do not agree with real time: leave out --strict or --past";
        return Err(Failure::Usage(words.to_string()));
    }
    if !args.past.subsec_nanos().is_multiple_of(1_000_000) {
        let words = "--past is in whole milliseconds, such as 1ms or 2s";
        return Err(Failure::Usage(words.to_string()));
    }
    let source = args.source(args.workload().map_err(Failure::Usage)?);
    source.expect_tables(&args.protocol)?;
    let settings = args.settings()?;
    let kept = args.history.as_ref().or(args.edn.as_ref());
    if kept.is_some() && settings.len() > 1 {
        let words = "a file holds one history: name one --protocol, and one value of --opaque";
        return Err(Failure::Usage(words.to_string()));
    }
    let seed = args.seed.unwrap_or_else(drawn_seed);
    interrupt::listen()?;
    // The seed is printed before the runs, in case a run does not end normally.
    output::say(&format!("seed {seed}"));
    let mut rules = Rules {
        claim: args.claim(),
        options: DatabaseOptions { opaque: None, past: args.past },
        seed,
        duration: args.duration,
        history: args.history.as_deref(),
        edn: args.edn.as_deref(),
        agenda: Agenda::new(settings.len(), args.duration),
    };
    let mut finding = Finding::Good;
    for (done, &setting) in settings.iter().enumerate() {
        let Setting { protocol, opaque } = setting;
        rules.options.opaque = opaque;
        let asked = args.threads;
        let threads = if protocol.permits(asked) { asked } else { 1 };
        let verdict = match source.judge(protocol, threads, &rules) {
            Err(Failure::Interrupted) if done > 0 => {
                return ended_early(&settings[done..], finding);
            }
            judged => judged?,
        };
        let has_reader = output::print(|out| verdict.print(&setting.name(), out))?;
        finding = finding.max(verdict.finding());
        if !has_reader {
            return Ok(Ending { finding, early: verdict.ended_early });
        }
        rules.agenda.advance();
        let left = &settings[done + 1..];
        if verdict.ended_early || interrupt::is_pressed() && !left.is_empty() {
            return ended_early(left, finding);
        }
    }
    Ok(Ending { finding, early: false })
}

/// A protocol, and the opacity of its database; `None` if the protocol leaves no choice.
#[derive(Clone, Copy)]
struct Setting {
    protocol: Choice,
    opaque: Option<bool>,
}

impl Setting {
    fn name(self) -> String {
        let opaque = if self.opaque == Some(false) { " not opaque" } else { "" };
        format!("{}{opaque}", self.protocol.name())
    }
}

/// Prints the settings in `left`, which were not checked, and returns the ending with `finding`,
/// which is about the others.
fn ended_early(left: &[Setting], finding: Finding) -> Result<Ending, Failure> {
    if !left.is_empty() {
        let names: Vec<_> = left.iter().map(|setting| setting.name()).collect();
        let names = names.join(", ");
        output::print(|out| writeln!(out, "note: ended early, by Ctrl-C: not checked: {names}"))?;
    }
    Ok(Ending { finding, early: true })
}

/// Returns a seed that differs from run to run.
fn drawn_seed() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.as_micros() as u64 % 1_000_000_000)
}

/// The source of a history.
enum Source {
    /// The versions that the engine reports as read and written.
    Versions(Box<dyn Recordable>),
    /// The values that clients receive.
    Values(Box<dyn Clients>),
}

impl Source {
    /// Checks that the workload has the tables that `protocols` name.
    fn expect_tables(&self, protocols: &Choices) -> Result<(), Failure> {
        match self {
            Source::Versions(workload) => {
                protocols.expect_tables(&workload.name(), workload.tables())
            }
            Source::Values(clients) => protocols.expect_tables(clients.name(), &[clients.table()]),
        }
    }

    /// Records a history under a protocol, on `threads` threads, and judges it.
    fn judge(
        &self,
        protocol: Choice,
        threads: usize,
        rules: &Rules<'_>,
    ) -> Result<Verdict, Failure> {
        match self {
            Source::Versions(workload) => record(&**workload, protocol, threads, rules),
            Source::Values(clients) => clients.ask(protocol, threads, rules),
        }
    }
}

impl CheckArgs {
    /// Returns the property that a history must have.
    fn claim(&self) -> Claim {
        Claim { strict: self.strict, opaque: self.opacity, horizon: self.horizon }
    }

    /// Returns every protocol with each opacity that was requested.
    fn settings(&self) -> Result<Vec<Setting>, Failure> {
        let asked = Switch::are_on(&self.opaque);
        if !asked.is_empty()
            && let Some(note) = unconcerned(&self.protocol, "--opaque", Choice::leaves_opacity)?
        {
            output::say(&format!("note: {note}"));
        }
        let each = self.protocol.0.iter();
        Ok(each
            .flat_map(|&protocol| {
                let opacities = protocol.opacities(&asked).into_iter();
                opacities.map(move |opaque| Setting { protocol, opaque })
            })
            .collect())
    }

    /// Returns the source of the history. The tables of the source are small enough for
    /// transactions to conflict.
    fn source(&self, workload: AnyWorkload) -> Source {
        Source::Versions(match workload {
            AnyWorkload::Random => random(Random { keys: self.keys, operations: self.operations }),
            AnyWorkload::Ycsb => {
                // Half of the operations write.
                let mix = Ycsb { rows: 1_000, transactions: 20_000, ..Ycsb::published(Mix::A) };
                ycsb(Ycsb { verify: Verify::Increment, ..mix })
            }
            AnyWorkload::YcsbHot => {
                ycsb_joint(Ycsb { transactions: 20_000, verify: Verify::Increment, ..Ycsb::hot(5) })
            }
            AnyWorkload::LongScan => {
                let scans = LongScan { scan: 100, ..LongScan::published() };
                long_scan(LongScan { rows: 1_000, transactions: 20_000, ..scans })
            }
            AnyWorkload::Shifting => {
                shifting(Shifting { rows: 1_000, transactions: 20_000, ..Shifting::published() })
            }
            AnyWorkload::Smallbank => smallbank(SmallBank {
                accounts: 100,
                transactions: 20_000,
                ..SmallBank::bench_base()
            }),
            AnyWorkload::Tpcc => {
                // Without the hint, each delivery would read past all orders delivered before, and
                // the checker would have to follow all of these reads.
                let small = Tpcc { customers: 20, items: 50, ..Tpcc::strict() };
                tpcc(Tpcc { delivery_hint: true, audit_every: 1_000, ..small })
            }
            AnyWorkload::Rubis => {
                // The items are few and sell out.
                let small = Rubis {
                    items: 200,
                    users: 50,
                    bids: 3,
                    purchases: 100,
                    stock: 100,
                    ..Rubis::strict()
                };
                rubis(Rubis { transactions: 20_000, ..small })
            }
            AnyWorkload::Wikipedia => {
                // All users edit and watch the same few pages.
                let weights = [3, 2, 5, 3, 3, 1];
                let small = Wikipedia { users: 20, pages: 10, weights, ..Wikipedia::strict() };
                wikipedia(Wikipedia { transactions: 20_000, ..small })
            }
            AnyWorkload::Lists => return Source::Values(lists()),
            AnyWorkload::Registers => return Source::Values(registers()),
        })
    }

    /// Returns the workload to run, or an error if the workload does not fit the mode.
    fn workload(&self) -> Result<AnyWorkload, String> {
        let default = match self.mode {
            CheckMode::White => AnyWorkload::Random,
            CheckMode::Black => AnyWorkload::Lists,
        };
        let workload = self.workload.unwrap_or(default);
        let is_black = matches!(workload, AnyWorkload::Lists | AnyWorkload::Registers);
        match self.mode {
            CheckMode::White if is_black => {
                Err("histories of lists and registers have no versions to check: add --mode black".to_string())
            }
            CheckMode::Black if !is_black => {
                Err("with --mode black the workload is `lists` or `registers`: only there do values tell the order"
                    .to_string())
            }
            CheckMode::Black if self.opacity => {
                Err("what doomed attempts see is no business of clients: --opacity needs --mode white".to_string())
            }
            CheckMode::White if self.edn.is_some() => {
                Err("Elle reads histories of clients only: --edn needs --mode black".to_string())
            }
            _ => Ok(workload),
        }
    }
}
