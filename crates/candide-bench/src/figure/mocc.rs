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

use super::Bounds;

/// The work after each operation of Figure 7, without which two cores hardly have two transactions
/// at the same time.
const THINK: Duration = Duration::from_micros(1);

/// MOCC with the queue lock of the paper.
const QUEUE: &str = "mocc:lock=queue";

/// The numbers of read-modify-writes of Figure 7, and the titles of the panels.
const RMWS: [(usize, &str); 4] = [
    (1, "Figure 7: one read-modify-write among 10 operations on 50 rows"),
    (2, "Figure 7: two read-modify-writes among 10 operations on 50 rows"),
    (5, "Figure 7: five read-modify-writes among 10 operations on 50 rows"),
    (10, "Figure 7: ten read-modify-writes on 50 rows"),
];

/// The settings of Figure 8.
const THRESHOLDS: [&str; 7] =
    ["mocc:h=0", "mocc:h=4", "mocc:h=5", "mocc:h=8", "mocc:h=10", "mocc:h=20", "mocc:per=page"];

/// The names of the phases of Figure 8.
const READING: &str = "read";
const WRITING: &str = "read-modify-write";

pub(super) fn outline(bounds: &Bounds) -> Outline {
    let mut outline = Outline {
        name: "mocc",
        title: "Mostly-optimistic concurrency control, beside optimistic and pessimistic",
        source: "Wang and Kimura, VLDB 2016, Figures 6, 7 and 8, Tables 3 and 4",
        measured: "measured there with 288 cores of sixteen Xeons E7-8890, runs of 10 s, 3 or 10 of each",
        shows: Shown::Tails,
        cases: Vec::new(),
        lines: Vec::new(),
        claims: Vec::new(),
        deviations: Vec::new(),
    };
    low_contention(&mut outline, bounds);
    read_only(&mut outline, bounds);
    for (rmws, title) in RMWS {
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

/// Adds the lines of `policies` to the panel, each compared with the first, which is `occ`. Returns
/// the index of the first.
fn lines(
    outline: &mut Outline,
    panel: &Panel<'_>,
    policies: &[&str],
    published: impl Fn(&str) -> Option<Published>,
) -> usize {
    let first = outline.lines.len();
    for &policy in policies {
        let base = (outline.lines.len() > first).then_some(first);
        outline.line(panel, policy, &like_foedus(policy), base, published(policy));
    }
    first
}

/// Returns a claim about a quantity of a line as a part of that of the line `occ`.
fn of_occ(
    text: &'static str,
    line: usize,
    quantity: Quantity,
    occ: usize,
    accepted: RangeInclusive<f64>,
) -> Claim {
    Claim { text, line, quantity, compared: Compared::RatioTo(vec![occ]), accepted }
}

/// Returns a claim about a quantity of a line that is compared with none.
fn alone(
    text: &'static str,
    line: usize,
    quantity: Quantity,
    accepted: RangeInclusive<f64>,
) -> Claim {
    Claim { text, line, quantity, compared: Compared::Nothing, accepted }
}

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
    let occ = lines(outline, &panel, &["occ", "mocc", QUEUE, "pcc"], published);
    let (mocc, pcc) = (occ + 1, occ + 3);
    outline.claims.extend([
        of_occ(
            "Table 3: MOCC is as fast as OCC (at least 0.97)",
            mocc,
            Quantity::Throughput,
            occ,
            0.97..=f64::INFINITY,
        ),
        Claim {
            text: "Table 3: MOCC aborts as much as OCC (within 0.1 points)",
            line: mocc,
            quantity: Quantity::Aborted,
            compared: Compared::DifferenceFrom(occ),
            accepted: 0.0..=0.001,
        },
        of_occ(
            "Table 3: PCC is slower than OCC (at most 0.97)",
            pcc,
            Quantity::Throughput,
            occ,
            0.0..=0.97,
        ),
    ]);
}

/// Returns the workload of 50 rows with `rmws` read-modify-writes.
fn hot(bounds: &Bounds, rmws: usize) -> Ycsb<Joint> {
    let published = Ycsb::hot(rmws);
    let transactions = bounds.room.inputs(published.transactions);
    Ycsb { transactions, verify: Verify::Increment, ..published }
}

/// Adds Figure 6.
fn read_only(outline: &mut Outline, bounds: &Bounds) {
    let workload = || ycsb_joint(hot(bounds, 0));
    let title = "Figure 6: reads of 10 of 50 rows";
    let panel = Panel { title, threads: &bounds.threads, workload: Workload::Fixed(&workload) };
    let published = |policy: &str| match policy {
        "mocc" => Published::words("scales as FOEDUS (occ) does"),
        "pcc" | "2pl-dreadlock" => Published::words("170 times slower than FOEDUS on 288 cores"),
        _ => None,
    };
    let policies = ["occ", "mocc", "pcc", "2pl-dreadlock", "hybrid"];
    let occ = lines(outline, &panel, &policies, published);
    let slower = |line, text| of_occ(text, line, Quantity::Throughput, occ, 0.0..=0.97);
    outline.claims.extend([
        of_occ(
            "Figure 6: MOCC is as fast as OCC (at least 0.99)",
            occ + 1,
            Quantity::Throughput,
            occ,
            0.99..=f64::INFINITY,
        ),
        alone("Figure 6: MOCC takes no lock", occ + 1, Quantity::Locks, 0.0..=0.0),
        slower(occ + 2, "Figure 6: PCC is slower than OCC (at most 0.97)"),
        slower(occ + 3, "Figure 6: Dreadlock is slower than OCC (at most 0.97)"),
    ]);
}

/// Adds the part of Figure 7 with `rmws` read-modify-writes.
fn conflicts(outline: &mut Outline, bounds: &Bounds, rmws: usize, title: &'static str) {
    let think = Think::new(THINK).expect("a transaction may work that long");
    let workload = || ycsb_joint(Ycsb { think, ..hot(bounds, rmws) });
    let panel = Panel { title, threads: &bounds.threads, workload: Workload::Fixed(&workload) };
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
    let is_end = [RMWS[0].0, RMWS[RMWS.len() - 1].0].contains(&rmws);
    let policies = if is_end { &all[..] } else { &all[..5] };
    let occ = lines(outline, &panel, policies, published);
    let (mocc, pcc) = (occ + 1, occ + 2);
    match rmws {
        1 => outline.claims.push(of_occ("Figure 7: with one read-modify-write, PCC aborts less than OCC (at most 0.8)", pcc, Quantity::Aborted, occ, 0.0..=0.8)),
        10 => outline.claims.extend([
            of_occ("Figure 7: with ten, MOCC aborts dramatically less than OCC (at most 0.2)", mocc, Quantity::Aborted, occ, 0.0..=0.2),
            Claim {
                text: "Figure 7: with ten, MOCC aborts less than PCC (at most 0.8)",
                line: mocc,
                quantity: Quantity::Aborted,
                compared: Compared::RatioTo(vec![pcc]),
                accepted: 0.0..=0.8,
            },
            of_occ("Figure 7: with ten, MOCC is faster than OCC (at least 1.3)", mocc, Quantity::Throughput, occ, 1.3..=f64::INFINITY),
            of_occ("Figure 7: with ten, PCC is slower than OCC (at most 0.97)", pcc, Quantity::Throughput, occ, 0.0..=0.97),
            Claim {
                text: "Figure 7: with ten, MOCC is the fastest of all (at least 1 of the best other)",
                line: mocc,
                quantity: Quantity::Throughput,
                compared: Compared::RatioTo(others(occ, policies, &["mocc", QUEUE])),
                accepted: 1.0..=f64::INFINITY,
            },
        ]),
        _ => {}
    }
}

/// Returns the indexes of the lines of `policies`, of which the first has the index `first`,
/// without those in `left_out`.
fn others(first: usize, policies: &[&str], left_out: &[&str]) -> Vec<usize> {
    let kept = policies.iter().enumerate().filter(|(_, policy)| !left_out.contains(policy));
    kept.map(|(index, _)| first + index).collect()
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
    let occ = lines(outline, &panel, &policies, published);
    let line = |wanted: &str| {
        let place = policies.iter().position(|policy| *policy == wanted);
        occ + place.expect("it is one of the settings")
    };
    let learns = |line, text| alone(text, line, Quantity::AbortedAtFirst(WRITING), 0.0..=0.02);
    outline.claims.extend([
        of_occ(
            "Figure 8: with H = 0, MOCC is slower than OCC while all read (at most 0.8)",
            line("mocc:h=0"),
            Quantity::ThroughputIn(READING),
            occ,
            0.0..=0.8,
        ),
        of_occ(
            "Figure 8: with H = 5, MOCC is as fast as OCC while all read (at least 0.97)",
            line("mocc:h=5"),
            Quantity::ThroughputIn(READING),
            occ,
            0.97..=f64::INFINITY,
        ),
        learns(
            line("mocc:h=4"),
            "Figure 8: with H = 4, below 2 % are aborted in the first 5 ms of writing",
        ),
        learns(
            line("mocc:h=5"),
            "Figure 8: with H = 5, below 2 % are aborted in the first 5 ms of writing",
        ),
        learns(
            line("mocc:h=10"),
            "Figure 8: with H = 10, below 2 % are aborted in the first 5 ms of writing",
        ),
        of_occ(
            "Figure 8: with H = 20, MOCC aborts as much as OCC while all write (0.8 to 1.25)",
            line("mocc:h=20"),
            Quantity::AbortedIn(WRITING),
            occ,
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
    let workload = || {
        let published = LongScan::published();
        let transactions = bounds.room.inputs(published.transactions);
        long_scan(LongScan {
            rows: bounds.room.large_table("long-scan"),
            transactions,
            ..published
        })
    };
    // A scan is long enough for threads to meet even if they share a core.
    let mut threads = bounds.threads.clone();
    threads.push(2 * bounds.most());
    let title = "Table 4: scans of a thousand rows, between a read and a write of one row";
    let panel = Panel { title, threads: &threads, workload: Workload::Fixed(&workload) };
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
    let policies = ["occ", "mocc", "pcc", "hybrid", "2pl-wait-die"];
    let occ = lines(outline, &panel, &policies, published);
    let aborted = |line, text, accepted| alone(text, line, Quantity::Aborted, accepted);
    outline.claims.extend([
        aborted(occ, "Table 4: OCC aborts the most by far (at least 50 %)", 0.5..=1.0),
        aborted(occ + 1, "Table 4: MOCC hardly aborts (below 2 %)", 0.0..=0.02),
        aborted(occ + 2, "Table 4: PCC hardly aborts (below 2 %)", 0.0..=0.02),
        aborted(
            occ + 3,
            "Table 4: hybrid aborts the first attempt of each (45 to 55 %)",
            0.45..=0.55,
        ),
        Claim {
            text: "Table 4: MOCC is faster than all others (at least 1.5 of the best other)",
            line: occ + 1,
            quantity: Quantity::Throughput,
            compared: Compared::RatioTo(others(occ, &policies, &["mocc"])),
            accepted: 1.5..=f64::INFINITY,
        },
    ]);
}
