//! "Opportunities for Optimism in Contended Main-Memory Multicore Transactions" (VLDB 2020):
//! Figures 4, 6, 8 and 12.

use candide::experiments::Factor;
use candide_harness::Variant;
use candide_harness::figure::{Line, Outline, Panel, Published, Workload, plain};
use candide_workloads::tpcc::Tpcc;
use candide_workloads::ycsb::Mode;
use candide_workloads_keys::measured::ycsb;
use candide_workloads_tpcc::measured::tpcc;
use candide_workloads_websites::measured::{rubis, wikipedia};

use super::Bounds;

const MEASURED: &str = "measured there with up to 64 threads on two Xeons E5-2686 v4 of 32 cores together, runs of 10 s, the median of 5";

/// The protocols, by their names here.
const PROTOCOLS: [&str; 4] = ["occ", "tictoc", "mvto", "mvcc"];

/// A figure of the paper without anything in it.
fn empty(
    name: &'static str,
    title: &'static str,
    source: &'static str,
    bounds: &Bounds,
) -> Outline {
    let mut deviations = vec![
        "there the engine is STOv2 with rpmalloc and Masstree; here all is this engine's own: slabs, hash indexes that grow, \
         B+trees by the words of keys"
            .to_string(),
    ];
    if bounds.most() < 64 {
        deviations.push(format!(
            "with at most {} threads at a time there is less contention than with 64, so there is less to gain and to lose",
            bounds.most()
        ));
    }
    Outline {
        name,
        title,
        source,
        measured: MEASURED,
        cases: Vec::new(),
        lines: Vec::new(),
        deviations,
    }
}

/// Notes the protocols that differ from those of the paper.
fn compare_protocols(outline: &mut Outline) {
    let deviations = [
        "mvto is after MSTO: it adds versions at their timestamps and keeps updates that cannot fail as versions of their own until \
         they are read; those that can fail, such as sums that may overflow, it applies when it commits. mvcc is no protocol of the paper: \
         it adds versions in the order of commits",
        "MSTO runs transactions that only read a little in the past; mvto and mvcc here run all as of their beginning",
        "TSTO has timestamps on rows; tictoc here has them on the nodes of indexes as well",
    ];
    outline.deviations.extend(deviations.map(str::to_string));
}

/// Calls `each` with the workloads of Figures 8 and 12 whose numbers are in `wanted`.
fn with_panels(bounds: &Bounds, wanted: &[usize], mut each: impl FnMut(usize, &Panel<'_>)) {
    let Bounds { threads, room } = bounds;
    let tpcc_one = || tpcc(room.tpcc(Tpcc::published(), 1));
    let tpcc_each = |threads| tpcc(room.tpcc(Tpcc::published(), threads));
    let ycsb_a = || ycsb(room.ycsb(Mode::A));
    let ycsb_b = || ycsb(room.ycsb(Mode::B));
    let encyclopedia = || wikipedia(room.wikipedia());
    let auctions = || rubis(room.rubis());
    let panel = |title, workload| Panel { title, threads, workload };
    let panels = [
        panel("TPC-C, one warehouse", Workload::Fixed(&tpcc_one)),
        panel("TPC-C, a warehouse for each thread", Workload::PerThreads(&tpcc_each)),
        panel("YCSB-A", Workload::Fixed(&ycsb_a)),
        panel("YCSB-B", Workload::Fixed(&ycsb_b)),
        panel("Wikipedia", Workload::Fixed(&encyclopedia)),
        panel("RUBiS", Workload::Fixed(&auctions)),
    ];
    wanted.iter().for_each(|&index| each(index, &panels[index]));
}

/// The places of the panels.
const TPCC_ONE: usize = 0;
const TPCC_EACH: usize = 1;
const YCSB_A: usize = 2;
const YCSB_B: usize = 3;
const WIKIPEDIA: usize = 4;
const RUBIS: usize = 5;

/// Figure 4.
pub(super) fn factors(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "factors",
        "What each choice below the protocol is worth: occ, TPC-C, the full mix",
        "Huang et al., VLDB 2020, Figure 4",
        bounds,
    );
    let base = plain("occ");
    with_panels(bounds, &[TPCC_ONE, TPCC_EACH], |panel_index, panel| {
        let first = outline.line(panel, "good choices only", &base, None, None);
        for factor in Factor::ALL.into_iter().filter(|factor| factor.is_available()) {
            let published = match (factor, panel_index) {
                (Factor::NoBackoff, TPCC_ONE) => {
                    Published::words("varies much, and collapses at the highest contention")
                }
                (Factor::SystemAllocator, TPCC_ONE) => {
                    Published::ratio(1.0 / 1.6, 1.0 / 1.6, "1/1.6 (glibc)")
                }
                (Factor::SystemAllocator, _) => Published::words("stops scaling (glibc)"),
                (Factor::Jemalloc, TPCC_ONE) => {
                    Published::words("better than glibc, but not by much")
                }
                (Factor::UnwindingAborts, TPCC_ONE) => {
                    Published::ratio(1.0 / 1.5, 1.0 / 1.2, "1/1.2 to 1/1.5 (C++ exceptions)")
                }
                (Factor::OrderedOnly, _) => {
                    Published::ratio(1.0 / 1.2, 1.0 / 1.2, "1/1.2 at any contention")
                }
                (Factor::ContendedKeys, _) => {
                    Published::words("no great effect on the whole; see `delivery`")
                }
                (Factor::SortedLocks, _) => {
                    Published::ratio(0.9, 0.9, "about 10 % (in the text only)")
                }
                _ => None,
            };
            let variant = Variant { factors: vec![factor], ..base.clone() };
            outline.line(panel, factor.name(), &variant, Some(first), published);
        }
    });
    outline.deviations.extend(
        [
            "mimalloc, jemalloc, contended-keys, sorted-locks and fixed-hash are not in the published figure; its text has jemalloc, \
             as an option of Silo",
            "system-allocator, mimalloc and jemalloc leave the arrays of hash indexes where they are, and threads take blocks of \
             one table one after the other; unwinding-aborts unwinds as Rust's panics do, where C++ exceptions were thrown",
        ]
        .map(str::to_string),
    );
    if !Factor::Jemalloc.is_available() {
        let how = "jemalloc is left out; a command built with `--features jemalloc` measures it";
        outline.deviations.push(how.to_string());
    }
    outline
}

/// Figure 6.
pub(super) fn delivery(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "delivery",
        "Deliveries with keys that keep districts apart and with keys that do not: occ, TPC-C, the full mix, one warehouse",
        "Huang et al., VLDB 2020, Figure 6",
        bounds,
    );
    let Bounds { threads, room } = bounds;
    let with_keys = |contention_aware_keys| {
        let published = Tpcc { contention_aware_keys, ..Tpcc::published() };
        tpcc(room.tpcc(published, 1))
    };
    let (aware, contended) = (|| with_keys(true), || with_keys(false));
    let base = plain("occ");
    let title = "deliveries";
    let panel = |make| Panel { title, threads, workload: Workload::Fixed(make) };
    let first = outline.line(&panel(&aware), "contention-aware keys", &base, None, None);
    let starved = Published::words("almost completely starved at high contention");
    let second = outline.line(&panel(&contended), "index contention", &base, Some(first), starved);
    // These runs again, with all of their transactions counted.
    for (line, base) in [(first, None), (second, Some(outline.lines.len()))] {
        let of_all = Line {
            panel: "all transactions",
            label: outline.lines[line].label.clone(),
            cases: outline.lines[line].cases.clone(),
            counted: None,
            base,
            published: base.and_then(|_| Published::words("no great effect")),
        };
        outline.lines.push(of_all);
        outline.lines[line].counted = Some("delivery");
    }
    outline.deviations.push(
        "as there, deliveries are queued, one thread makes those of a warehouse, and each looks for its order from the beginning of \
         the district"
            .to_string(),
    );
    outline
}

/// Figure 8.
pub(super) fn protocols(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "protocols",
        "The protocols and six workloads, with one timestamp to a row and without commit-time updates",
        "Huang et al., VLDB 2020, Figure 8",
        bounds,
    );
    let wanted = [TPCC_ONE, TPCC_EACH, YCSB_A, YCSB_B, WIKIPEDIA, RUBIS];
    with_panels(bounds, &wanted, |index, panel| {
        let mut base = None;
        for protocol in PROTOCOLS {
            let published = match (index, protocol) {
                (TPCC_ONE, "tictoc") => Published::ratio(1.0, 1.7, "up to 1.7"),
                (TPCC_ONE, "mvto" | "mvcc") => {
                    Published::ratio(1.0 / 0.6, 1.0 / 0.6, "about 1/0.6, at 64 threads as well")
                }
                (TPCC_EACH, "tictoc") => Published::words("slightly less"),
                (TPCC_EACH, "mvto" | "mvcc") => Published::ratio(0.52, 0.52, "0.52"),
                (YCSB_A, "mvto" | "mvcc") => {
                    Published::ratio(1.0 / 1.7, 1.0 / 1.5, "1/1.5 to 1/1.7")
                }
                (YCSB_A..=RUBIS, "tictoc") => Published::words("no significant gain"),
                _ => None,
            };
            let line = outline.line(panel, protocol, &plain(protocol), base, published);
            base = base.or(Some(line));
        }
    });
    compare_protocols(&mut outline);
    outline
}

/// Figure 12, a to f.
pub(super) fn high_contention(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "high-contention",
        "What commit-time updates and timestamp splitting are worth together",
        "Huang et al., VLDB 2020, Figure 12 a to f",
        bounds,
    );
    let wanted = [TPCC_ONE, TPCC_EACH, YCSB_A, YCSB_B, WIKIPEDIA, RUBIS];
    with_panels(bounds, &wanted, |index, panel| {
        for protocol in PROTOCOLS {
            let published = match (index, protocol) {
                (TPCC_ONE, "occ") => Published::ratio(3.9, 3.9, "3.9"),
                (TPCC_ONE, "tictoc") => Published::ratio(2.0, 2.0, "2"),
                (TPCC_ONE, "mvto" | "mvcc") => Published::ratio(3.38, 3.38, "3.38 at 64 threads"),
                (TPCC_EACH, "mvto" | "mvcc") => Published::ratio(0.7, 0.7, "close to 30 % less"),
                (TPCC_EACH, _) => Published::ratio(0.9, 0.9, "about 10 % less"),
                (YCSB_A, "mvto" | "mvcc") => Published::words(
                    "scales to 64 threads, and is ahead of the others beyond 12 cores",
                ),
                (YCSB_B, "mvto" | "mvcc") => Published::words("a small loss"),
                (YCSB_B, _) => Published::words("a gain: fewer bytes are copied"),
                (WIKIPEDIA, _) => Published::ratio(2.6, 3.5, "2.6 to 3.5 with many cores"),
                (RUBIS, _) => Published::ratio(1.2, 1.4, "1.2 to 1.4"),
                _ => None,
            };
            let off = plain(protocol);
            let on = Variant { cu: true, ts: true, ..off.clone() };
            let base = outline.line(panel, protocol, &off, None, None);
            outline.line(panel, format!("{protocol}, cu and ts"), &on, Some(base), published);
        }
    });
    compare_protocols(&mut outline);
    splitting(&mut outline);
    outline
}

/// Figure 12g.
pub(super) fn separate_effects(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "separate-effects",
        "What commit-time updates (cu) and timestamp splitting (ts) are worth alone and together",
        "Huang et al., VLDB 2020, Figure 12g, at 64 threads",
        bounds,
    );
    with_panels(bounds, &[TPCC_ONE, YCSB_A, WIKIPEDIA, RUBIS], |index, panel| {
        for protocol in ["occ", "mvto", "mvcc"] {
            let off = plain(protocol);
            let base = outline.line(panel, protocol, &off, None, None);
            for (cu, ts, what) in
                [(true, false, "cu"), (false, true, "ts"), (true, true, "cu and ts")]
            {
                let published = match (index, protocol, what) {
                    (TPCC_ONE, "mvto" | "mvcc", "cu and ts") => {
                        Published::ratio(3.38, 3.38, "3.38")
                    }
                    (TPCC_ONE, "mvto" | "mvcc", _) => Published::words("less than 1"),
                    (TPCC_ONE, "occ", "cu and ts") => Published::ratio(3.9, 3.9, "up to 3.9"),
                    (WIKIPEDIA, "occ", "cu") => {
                        Published::words("the highest of all for this workload")
                    }
                    (WIKIPEDIA, _, "cu and ts") => {
                        Published::ratio(2.6, 3.5, "2.6 to 3.5 with many cores")
                    }
                    (RUBIS, _, "cu and ts") => Published::ratio(1.2, 1.4, "1.2 to 1.4"),
                    _ => None,
                };
                let variant = Variant { cu, ts, ..off.clone() };
                outline.line(panel, format!("{protocol}, {what}"), &variant, Some(base), published);
            }
        }
    });
    compare_protocols(&mut outline);
    splitting(&mut outline);
    outline
}

/// Notes how rows are split, compared with the paper.
fn splitting(outline: &mut Outline) {
    outline.deviations.push(
        "MSTO splits timestamps by splitting tables; here the groups of a row stay together under every protocol"
            .to_string(),
    );
}
