//! `candide check`: records what transactions do, or what clients are told, and has a checker judge it.

mod clients;
mod file;
mod record;
mod verdict;

use std::time::{SystemTime, UNIX_EPOCH};

use candide_workloads::clients::{Lists, Registers};
use candide_workloads::random::Random;
use candide_workloads::rubis::Rubis;
use candide_workloads::smallbank::SmallBank;
use candide_workloads::tpcc::Tpcc;
use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::wikipedia::Wikipedia;
use candide_workloads::ycsb::{Mode as Mix, Verify, Ycsb};

use crate::Ending;
use crate::cli::{CheckArgs, CheckMode, Subject};
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Agenda;
use crate::registry::Choice;
use verdict::Verdict;

/// What every run of an invocation has in common.
struct Run<'a> {
    args: &'a CheckArgs,
    seed: u64,
    agenda: Agenda,
}

/// Does what was asked and prints what was found. After Ctrl-C that is what was recorded by then.
pub(crate) fn run(args: &CheckArgs) -> Result<Ending, Failure> {
    if let Some(path) = &args.file {
        let verdict = file::check(path, args)?;
        verdict.print(&path.display().to_string());
        return Ok(Ending { good: verdict.is_good(), early: false });
    }
    let subject = args.subject().map_err(Failure::Usage)?;
    let protocols = &args.protocol.0;
    let kept = args.history.as_ref().or(args.edn.as_ref());
    if kept.is_some() && protocols.len() > 1 {
        return Err(Failure::Usage("a file holds one history: name one --protocol".to_string()));
    }
    let seed = args.seed.unwrap_or_else(drawn_seed);
    interrupt::listen()?;
    // Now, too, in case the run does not end well.
    eprintln!("seed {seed}");
    let mut run = Run { args, seed, agenda: Agenda::new(protocols.len(), args.duration) };
    let mut good = true;
    for (done, &protocol) in protocols.iter().enumerate() {
        let verdict = run.under(protocol, subject)?;
        verdict.print(protocol.name());
        good &= verdict.is_good();
        run.agenda.advance();
        let left: Vec<_> = protocols[done + 1..].iter().map(|protocol| protocol.name()).collect();
        if verdict.ended_early || interrupt::is_pressed() && !left.is_empty() {
            if !left.is_empty() {
                println!("note: ended early, by Ctrl-C: not checked: {}", left.join(", "));
            }
            return Ok(Ending { good, early: true });
        }
    }
    Ok(Ending { good, early: false })
}

/// A seed that nobody has chosen.
fn drawn_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_micros() as u64 % 1_000_000_000)
}

impl Run<'_> {
    fn under(&self, protocol: Choice, subject: Subject) -> Result<Verdict, Failure> {
        let asked = self.args.threads.get();
        let threads = if protocol.permits(asked) { asked } else { 1 };
        match subject {
            Subject::Random => {
                let knobs = Random { keys: self.args.keys, operations: self.args.operations };
                protocol.run(record::Recording { workload: &knobs, threads, run: self })
            }
            Subject::Ycsb => {
                // Small, so that transactions meet; half of the operations write.
                let mix = Ycsb { rows: 1_000, transactions: 20_000, ..Ycsb::published(Mix::A) };
                let workload = Ycsb { verify: Verify::Increment, ..mix };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::YcsbHot => {
                let workload = Ycsb { transactions: 20_000, verify: Verify::Increment, ..Ycsb::hot(5) };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::LongScan => {
                let workload = LongScan { rows: 1_000, scan: 100, transactions: 20_000 };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::Shifting => {
                let workload = Shifting { rows: 1_000, transactions: 20_000, ..Shifting::published() };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::Smallbank => {
                let workload = SmallBank { accounts: 100, transactions: 20_000, ..SmallBank::bench_base() };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::Tpcc => {
                // Deliveries that began at the beginning would have the checker go through all that were delivered before.
                let small = Tpcc { customers: 20, items: 50, ..Tpcc::strict() };
                let workload = Tpcc { delivery_hint: true, audit_every: 1_000, ..small };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::Rubis => {
                // Few items, which sell out.
                let small = Rubis { items: 200, users: 50, bids: 3, purchases: 100, stock: 100, ..Rubis::strict() };
                let workload = Rubis { transactions: 20_000, ..small };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::Wikipedia => {
                // Few pages, which are edited and watched by everybody.
                let weights = [3, 2, 5, 3, 3, 1];
                let workload = Wikipedia { users: 20, pages: 10, weights, transactions: 20_000, ..Wikipedia::strict() };
                protocol.run(record::Recording { workload: &workload, threads, run: self })
            }
            Subject::Lists => protocol.run(clients::Asking::<Lists>::new(threads, self)),
            Subject::Registers => protocol.run(clients::Asking::<Registers>::new(threads, self)),
        }
    }
}

impl CheckArgs {
    /// What to run, if it goes with the mode.
    fn subject(&self) -> Result<Subject, String> {
        let default = match self.mode {
            CheckMode::White => Subject::Random,
            CheckMode::Black => Subject::Lists,
        };
        let subject = self.workload.unwrap_or(default);
        let is_black = matches!(subject, Subject::Lists | Subject::Registers);
        match self.mode {
            CheckMode::White if is_black => {
                Err("clients of lists and registers know nothing of versions: add --mode black".to_string())
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
            _ => Ok(subject),
        }
    }
}
