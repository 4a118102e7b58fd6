//! "Mostly-Optimistic Concurrency Control for Highly Contended Dynamic Workloads on a Thousand
//! Cores" (VLDB 2016): Figures 6, 7 and 8, Tables 3 and 4.

use std::ops::RangeInclusive;
use std::time::Duration;

use candide_compiled::keys::measured::{long_scan, shifting, ycsb_joint};
use candide_compiled::tpcc::measured::tpcc;
use candide_harness::Variant;
use candide_harness::figure::{
    Claim, Compared, Outline, Panel, Published, Quantity, Shown, Workload, plain,
};
use candide_workloads::Think;
use candide_workloads::tpcc::Tpcc;
use candide_workloads::two_tables::{LongScan, Shifting};
use candide_workloads::ycsb::{Joint, Verify, Ycsb};

use super::bounds::Bounds;

/// The work after each operation of Figure 7, without which two cores hardly have two transactions
/// at the same time.
const THINK: Duration = Duration::from_micros(1);

/// MOCC with the queue lock of the paper.
const QUEUE: &str = "mocc:lock=queue";

/// The titles of the panels of Figure 7, by the number of read-modify-writes.
const RMWS: [&str; 11] = [
    "Figure 7: no read-modify-write among 10 operations on 50 rows",
    "Figure 7: one read-modify-write among 10 operations on 50 rows",
    "Figure 7: two read-modify-writes among 10 operations on 50 rows",
    "Figure 7: three read-modify-writes among 10 operations on 50 rows",
    "Figure 7: four read-modify-writes among 10 operations on 50 rows",
    "Figure 7: five read-modify-writes among 10 operations on 50 rows",
    "Figure 7: six read-modify-writes among 10 operations on 50 rows",
    "Figure 7: seven read-modify-writes among 10 operations on 50 rows",
    "Figure 7: eight read-modify-writes among 10 operations on 50 rows",
    "Figure 7: nine read-modify-writes among 10 operations on 50 rows",
    "Figure 7: ten read-modify-writes on 50 rows",
];

/// The settings of Figure 8.
const THRESHOLDS: [&str; 8] = [
    "mocc:h=0",
    "mocc:h=4",
    "mocc:h=5",
    "mocc:h=8",
    "mocc:h=10",
    "mocc:h=20",
    "mocc:per=page",
    QUEUE,
];

/// The names of the phases of Figure 8.
const READING: &str = "read";
const WRITING: &str = "read-modify-write";

pub(super) fn outline(bounds: &Bounds) -> Outline {
    let mut outline = Outline::empty(
        "mocc",
        "Mostly-optimistic concurrency control, beside optimistic and pessimistic",
        "Wang and Kimura, VLDB 2016, Figures 6, 7 and 8, Tables 3 and 4",
        "measured in the paper with 288 cores of sixteen Xeons E7-8890, runs of 10 s, 3 or 10 of each",
        bounds.opacity,
    );
    outline.shows = Shown::Tails;
    low_contention(&mut outline, bounds);
    read_only(&mut outline, bounds);
    for (rmws, title) in RMWS.into_iter().enumerate() {
        conflicts(&mut outline, bounds, rmws, title);
    }
    shifts(&mut outline, bounds);
    scans(&mut outline, bounds);
    outline.deviations.extend(
        [
            "on few cores, a lock that all threads read costs little, and few transactions meet: there are no factors of ten and more \
             between policies, and aborts of optimistic transactions stay far below 98 %",
            "in Figure 7 a transaction works for a microsecond after each operation, where the published one goes on at once, so that \
             transactions of few threads are at work at the same time",
            "ERMIA, Orthrus, TPC-E and locks that are named across processes are not built here",
            "temperatures are those of rows, and rows are hot from 5, unless a line says otherwise; in the paper they are those of \
             pages, hot from 10; no temperature is reset here, they fall as locks turn out not to be needed",
            "PCC, Dreadlock, WaitDie and BlindDie are in FOEDUS and Orthrus there; here they are policies of one engine, in which \
             everything read is validated as well",
            "FOEDUS rolls back before the first item is looked at, where the standard, and this, has the others entered before; its stock-level \
             looks at one order more, and counts an item as often as it was ordered",
            "FOEDUS keeps rows in arrays and a Masstree of its own; here there are hash indexes and trees",
            FOR_UPDATE,
            "the 50 rows of Figures 6 and 7 and the single row of Figure 8 and Table 4 are as many as published, whatever --scale says",
        ]
        .map(str::to_string),
    );
    outline
}

/// Returns the variant of a policy in which columns that change have a timestamp of their own, and
/// additions do not read in the transaction, as in FOEDUS.
fn like_foedus(policy: &str) -> Variant {
    Variant { cu: true, ts: true, ..plain(policy) }
}

/// The lines of a panel, by their policies.
struct Lines(Vec<(&'static str, usize)>);

impl Lines {
    /// Adds a line for each of `policies` to `outline`, and compares the others with the first,
    /// which is `occ`. `panel` makes the panel of a policy.
    fn add<'a>(
        outline: &mut Outline,
        panel: impl Fn(&str) -> Panel<'a>,
        policies: &[&'static str],
        published: impl Fn(&str) -> Option<Published>,
    ) -> Lines {
        let mut lines: Vec<(&str, usize)> = Vec::new();
        for &policy in policies {
            let base = lines.first().map(|(_, occ)| *occ);
            let (panel, variant) = (panel(policy), like_foedus(policy));
            let line = outline.line(&panel, policy, &variant, base, published(policy));
            lines.push((policy, line));
        }
        Lines(lines)
    }

    /// Returns the index of the line of a policy.
    fn of(&self, wanted: &str) -> usize {
        let found = self.0.iter().find(|(policy, _)| *policy == wanted);
        found.expect("the line is in the panel").1
    }

    /// Makes a claim about the line of `policy`, as a part of that of `occ`.
    fn of_occ(
        &self,
        text: &str,
        policy: &str,
        quantity: Quantity,
        accepted: RangeInclusive<f64>,
    ) -> Claim {
        Claim::ratio(text, self.of(policy), quantity, [self.of("occ")], accepted)
    }

    /// Claims that MOCC is at least `least` times as fast as the best of the others.
    fn of_others(&self, text: &str, least: f64) -> Claim {
        let others = self.0.iter().filter(|(policy, _)| !["mocc", QUEUE].contains(policy));
        let others: Vec<usize> = others.map(|(_, line)| *line).collect();
        Claim::speed(text, self.of("mocc"), others, least..=f64::INFINITY)
    }

    /// Makes a claim about the line of `policy`, which is compared with none.
    fn alone(
        &self,
        text: &str,
        policy: &str,
        quantity: Quantity,
        accepted: RangeInclusive<f64>,
    ) -> Claim {
        Claim::alone(text, self.of(policy), quantity, accepted)
    }
}

/// Returns whether transactions under the policy say with a read that the row will be written.
/// Policies that lock before each access need such reads, since their transactions would otherwise
/// lock the row for reading first, and two of them would wait for each other. In the paper each
/// access states whether it writes.
fn reads_for_update(policy: &str) -> bool {
    policy == "pcc" || policy.starts_with("2pl-")
}

/// The deviation from the paper in the lines of such policies.
const FOR_UPDATE: &str = "in Figure 7 and Table 4, pcc and two-phase locking read for update what a transaction will write; the others \
                          do not, since a read for update locks the row also under occ";

/// Adds Table 3.
fn low_contention(outline: &mut Outline, bounds: &Bounds) {
    let Bounds { threads, room, .. } = bounds;
    let foedus = |threads| tpcc(room.tpcc(Tpcc::foedus(), threads));
    let title = "Table 3: TPC-C, with as many warehouses as threads";
    let panel = Panel { title, threads, workload: Workload::PerThreads(&foedus) };
    let published = |policy: &str| match policy {
        "occ" => Published::measured(
            16.9e6,
            0.0012,
            "FOEDUS: 16.9 ± 0.14 million, 59 thousand for each core; 0.12 % aborted",
        ),
        "mocc" => Published::measured(16.9e6, 0.0012, "16.9 ± 0.13 million, 0.12 % aborted"),
        "pcc" => Published::measured(9.1e6, 0.0007, "9.1 ± 0.37 million, 0.07 % aborted"),
        _ => None,
    };
    let policies = ["occ", "mocc", QUEUE, "pcc"];
    let lines = Lines::add(outline, |_| panel, &policies, published);
    outline.claims.extend([
        lines.of_occ(
            "Table 3: MOCC is as fast as OCC (at least 0.97)",
            "mocc",
            Quantity::Throughput,
            0.97..=f64::INFINITY,
        ),
        Claim {
            text: "Table 3: MOCC aborts as much as OCC (within 0.1 points)".to_string(),
            line: lines.of("mocc"),
            quantity: Quantity::Aborted,
            compared: Compared::DifferenceFrom(lines.of("occ")),
            accepted: 0.0..=0.001,
            least_threads: 1,
        },
        lines.of_occ(
            "Table 3: PCC is slower than OCC (at most 0.97)",
            "pcc",
            Quantity::Throughput,
            0.0..=0.97,
        ),
    ]);
}

/// Returns the workload of 50 rows with `rmws` read-modify-writes, which read for update or not.
fn hot(bounds: &Bounds, rmws: usize, for_update: bool) -> Ycsb<Joint> {
    let published = Ycsb::hot(rmws);
    let transactions = bounds.room.inputs(published.transactions);
    Ycsb { for_update, transactions, verify: Verify::Increment, ..published }
}

/// Adds Figure 6.
fn read_only(outline: &mut Outline, bounds: &Bounds) {
    let workload = || ycsb_joint(hot(bounds, 0, false));
    let title = "Figure 6: reads of 10 of 50 rows";
    let panel = Panel { title, threads: &bounds.threads, workload: Workload::Fixed(&workload) };
    let published = |policy: &str| match policy {
        "mocc" => Published::words("scales as FOEDUS (occ) does"),
        "pcc" | "2pl-dreadlock" => Published::words("170 times slower than FOEDUS on 288 cores"),
        _ => None,
    };
    let policies = ["occ", "mocc", QUEUE, "pcc", "2pl-dreadlock", "hybrid"];
    let lines = Lines::add(outline, |_| panel, &policies, published);
    let slower = |policy, text| lines.of_occ(text, policy, Quantity::Throughput, 0.0..=0.97);
    outline.claims.extend([
        lines.of_occ(
            "Figure 6: MOCC is as fast as OCC (at least 0.99)",
            "mocc",
            Quantity::Throughput,
            0.99..=f64::INFINITY,
        ),
        lines.alone("Figure 6: MOCC takes no lock", "mocc", Quantity::Locks, 0.0..=0.0),
        slower("pcc", "Figure 6: PCC is slower than OCC (at most 0.97)"),
        slower("2pl-dreadlock", "Figure 6: Dreadlock is slower than OCC (at most 0.97)"),
    ]);
}

/// Adds the part of Figure 7 with `rmws` read-modify-writes.
fn conflicts(outline: &mut Outline, bounds: &Bounds, rmws: usize, title: &'static str) {
    let think = Think::new(THINK).expect("the think time is valid");
    let workload = |for_update| ycsb_joint(Ycsb { think, ..hot(bounds, rmws, for_update) });
    let (announced, unannounced) = (|| workload(true), || workload(false));
    let panel = |policy: &str| {
        let make: &dyn Fn() -> _ = if reads_for_update(policy) { &announced } else { &unannounced };
        Panel { title, threads: &bounds.threads, workload: Workload::Fixed(make) }
    };
    let published = |policy: &str| match (policy, rmws) {
        ("occ", 10) => Published::aborted(0.98, "FOEDUS: as many as 98 % aborted"),
        ("mocc", _) => Published::words(
            "dramatically fewer aborts; orders of magnitude faster than FOEDUS and PCC",
        ),
        ("pcc", 1) => Published::words("significantly fewer aborts than FOEDUS, and faster"),
        ("pcc", _) => Published::words("slightly fewer aborts than FOEDUS; a few times slower"),
        ("2pl-blind-die" | "2pl-wait-die" | "2pl-dreadlock", _) => {
            Published::words("suffers from aborts because of deadlocks")
        }
        _ => None,
    };
    let all = [
        "occ",
        "mocc",
        "pcc",
        "hybrid",
        "2pl-wait-die",
        QUEUE,
        "2pl-no-wait",
        "2pl-blind-die",
        "2pl-dreadlock",
    ];
    let policies = if [1, 10].contains(&rmws) { &all[..] } else { &all[..6] };
    let lines = Lines::add(outline, panel, policies, published);
    match rmws {
        1 => outline.claims.push(lines.of_occ(
            "Figure 7: with one read-modify-write, PCC aborts less than OCC (at most 0.8)",
            "pcc",
            Quantity::Aborted,
            0.0..=0.8,
        )),
        10 => outline.claims.extend(with_ten(&lines)),
        _ => {}
    }
}

/// Returns the claims about the part of Figure 7 with ten read-modify-writes.
fn with_ten(lines: &Lines) -> [Claim; 5] {
    [
        lines.of_occ(
            "Figure 7: with ten, MOCC aborts dramatically less than OCC (at most 0.2)",
            "mocc",
            Quantity::Aborted,
            0.0..=0.2,
        ),
        Claim::ratio(
            "Figure 7: with ten, MOCC aborts less than PCC (at most 0.8)",
            lines.of("mocc"),
            Quantity::Aborted,
            [lines.of("pcc")],
            0.0..=0.8,
        ),
        lines.of_occ(
            "Figure 7: with ten, MOCC is faster than OCC (at least 1.3)",
            "mocc",
            Quantity::Throughput,
            1.3..=f64::INFINITY,
        ),
        lines.of_occ(
            "Figure 7: with ten, PCC is slower than OCC (at most 0.97)",
            "pcc",
            Quantity::Throughput,
            0.0..=0.97,
        ),
        lines.of_others(
            "Figure 7: with ten, MOCC is the fastest of all (at least 1 of the best other)",
            1.0,
        ),
    ]
}

/// Adds Figure 8.
fn shifts(outline: &mut Outline, bounds: &Bounds) {
    let phase = Shifting::published().phase.min(bounds.duration / 4);
    let workload = || {
        shifting(Shifting {
            rows: bounds.room.large_table("shifting"),
            transactions: bounds.room.inputs(Shifting::published().transactions),
            phase,
            slice: Duration::from_millis(1).min(phase),
            ..Shifting::published()
        })
    };
    let title = "Figure 8: a row that is read and written by turns, beside reads of 20 rows";
    let panel = Panel { title, threads: &bounds.threads, workload: Workload::Fixed(&workload) };
    let published = |policy: &str| match policy {
        "mocc:h=0" => Published::words("24 times slower while all read"),
        "mocc:h=4" | "mocc:h=8" => {
            Published::words("learns at once: the aborted share drops to zero")
        }
        "mocc:per=page" => {
            Published::words("hot from 10: learns at once: the aborted share drops to zero")
        }
        "mocc:h=20" => Published::words("never learns: virtually OCC"),
        _ => None,
    };
    let policies = [&["occ"], &THRESHOLDS[..]].concat();
    let lines = Lines::add(outline, |_| panel, &policies, published);
    let learns =
        |policy, text| lines.alone(text, policy, Quantity::AbortedAtFirst(WRITING), 0.0..=0.02);
    outline.claims.extend([
        lines.of_occ(
            "Figure 8: with H = 0, MOCC is slower than OCC while all read (at most 0.8)",
            "mocc:h=0",
            Quantity::ThroughputIn(READING),
            0.0..=0.8,
        ),
        lines.of_occ(
            "Figure 8: with H = 5, MOCC is as fast as OCC while all read (at least 0.97)",
            "mocc:h=5",
            Quantity::ThroughputIn(READING),
            0.97..=f64::INFINITY,
        ),
        learns(
            "mocc:h=4",
            "Figure 8: with H = 4, below 2 % are aborted in the first 5 ms of writing",
        ),
        learns(
            "mocc:h=5",
            "Figure 8: with H = 5, below 2 % are aborted in the first 5 ms of writing",
        ),
        learns(
            "mocc:h=10",
            "Figure 8: with H = 10, below 2 % are aborted in the first 5 ms of writing",
        ),
        lines.of_occ(
            "Figure 8: with H = 20, MOCC aborts as much as OCC while all write (0.8 to 1.25)",
            "mocc:h=20",
            Quantity::AbortedIn(WRITING),
            0.8..=1.25,
        ),
    ]);
    if phase < Shifting::published().phase {
        outline.deviations.push(format!(
            "a phase of Figure 8 takes {}, where it takes 100ms",
            humantime::format_duration(phase)
        ));
    }
}

/// Adds Table 4.
fn scans(outline: &mut Outline, bounds: &Bounds) {
    let workload = |for_update| {
        let published = LongScan::published();
        let transactions = bounds.room.inputs(published.transactions);
        long_scan(LongScan {
            rows: bounds.room.large_table("long-scan"),
            for_update,
            transactions,
            ..published
        })
    };
    let (announced, unannounced) = (|| workload(true), || workload(false));
    // A scan is long enough for threads to meet even if they share a core.
    let mut threads = bounds.threads.clone();
    threads.push(2 * bounds.most());
    let title = "Table 4: scans of a thousand rows, between a read and a write of one row";
    let panel = |policy: &str| {
        let make: &dyn Fn() -> _ = if reads_for_update(policy) { &announced } else { &unannounced };
        Panel { title, threads: &threads, workload: Workload::Fixed(make) }
    };
    let published = |policy: &str| match policy {
        "occ" => {
            Published::measured(10.5e3, 0.9955, "FOEDUS: 10.5 ± 0.0 thousand, 99.55 % aborted")
        }
        "mocc" => Published::measured(199.6e3, 0.004, "199.6 ± 3.1 thousand, 0.4 % aborted"),
        "pcc" => Published::measured(25.7e3, 0.0, "25.7 ± 1.7 thousand, 0 % aborted"),
        "hybrid" => {
            Published::measured(20.8e3, 0.501, "Thomasian: 20.8 ± 1.5 thousand, 50.1 % aborted")
        }
        _ => None,
    };
    let policies = ["occ", "mocc", QUEUE, "pcc", "hybrid", "2pl-wait-die"];
    let lines = Lines::add(outline, panel, &policies, published);
    let aborted = |policy, text, accepted| lines.alone(text, policy, Quantity::Aborted, accepted);
    outline.claims.extend([
        aborted("occ", "Table 4: OCC aborts the most by far (at least 50 %)", 0.5..=1.0),
        aborted("mocc", "Table 4: MOCC hardly aborts (below 2 %)", 0.0..=0.02),
        aborted("pcc", "Table 4: PCC hardly aborts (below 2 %)", 0.0..=0.02),
        aborted(
            "hybrid",
            "Table 4: hybrid aborts the first attempt of each (45 to 55 %)",
            0.45..=0.55,
        ),
        lines.of_others(
            "Table 4: MOCC is faster than all others (at least 1.5 of the best other)",
            1.5,
        ),
    ]);
}
