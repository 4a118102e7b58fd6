//! How many transactions a second the checker takes, of 10 reads and 5 writes over 10,000 keys.
//!
//! Making the history does not count. On Linux the time is that of the thread on a processor, so
//! that other programs take nothing from it but their share of the caches; elsewhere it is what a
//! clock on the wall says.
//!
//! `cargo run --release -p candide-check --example throughput [-- TRANSACTIONS [BATCH]]`

use candide_check::{Access, Checker, Event, Options, Transaction, Verdict};
use std::time::{Duration, Instant};

const KEYS: u64 = 10_000;
const READS: usize = 10;
const WRITES: usize = 5;
/// Transactions that run at once.
const SESSIONS: u64 = 8;

/// How far a serial order that is not strict may go back: a thousand transactions.
const HORIZON: u64 = 2_000;

/// Makes transactions that ran one after another in truth, and say that they overlapped.
struct Maker {
    random: u64,
    versions: Vec<u64>,
    made: u64,
}

impl Maker {
    fn draw(&mut self) -> u64 {
        // A linear congruential generator, of which the upper half is used.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % KEYS
    }

    fn access(&mut self, key: u64) -> Access {
        let version = self.versions[key as usize];
        Access {
            table: 0,
            key: [key].into(),
            group: 0,
            version: (version > 0).then_some(version),
            present: version > 0,
        }
    }

    fn make(&mut self) -> Event {
        self.made += 1;
        let reads: Vec<Access> = (0..READS)
            .map(|_| {
                let key = self.draw();
                self.access(key)
            })
            .collect();
        let mut writes: Vec<Access> = Vec::new();
        while writes.len() < WRITES {
            let key = self.draw();
            if writes.iter().all(|write| *write.key != [key]) {
                self.versions[key as usize] = self.made;
                writes.push(self.access(key));
            }
        }
        let (session, begun, ended) =
            (self.made % SESSIONS, 2 * self.made, 2 * (self.made + SESSIONS) - 1);
        Event::Transaction(Transaction {
            session,
            begun,
            ended,
            committed: true,
            reads,
            scans: Vec::new(),
            writes,
            as_of: None,
        })
    }
}

/// The time that this thread has had.
fn now(start: Instant) -> Duration {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_processor = statistics.and_then(|text| text.split_whitespace().next()?.parse().ok());
    on_processor.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

fn main() {
    let start = Instant::now();
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        arguments.next().map_or(default, |text| text.parse().expect("arguments are numbers"))
    };
    let (count, batch): (u64, u64) = (number(3_000_000), number(10_000));
    for (name, strict, horizon) in [("strict", true, 0), ("serializable", false, HORIZON)] {
        let mut maker = Maker { random: 1, versions: vec![0; KEYS as usize], made: 0 };
        let mut checker = Checker::new(Options { strict, horizon, ..Options::default() });
        let mut spent = Duration::ZERO;
        while maker.made < count {
            let events: Vec<Event> = (0..batch).map(|_| maker.make()).collect();
            let before = now(start);
            events.iter().for_each(|event| checker.feed(event));
            checker.advance(2 * (maker.made + 1));
            spent += now(start) - before;
        }
        let before = now(start);
        let summary = checker.finish();
        spent += now(start) - before;
        assert_eq!(summary.verdict, Verdict::Serializable);
        let rate = summary.transactions as f64 / spent.as_secs_f64();
        println!(
            "{name}: {} transactions, {rate:.0} per second, {} edges, at most {} live nodes",
            summary.transactions, summary.edges, summary.live_max
        );
    }
}
