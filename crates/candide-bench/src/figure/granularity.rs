//! "The Impact of Timestamp Granularity in Optimistic Concurrency Control" (2018): Figures 2 and 3.

use candide_compiled::keys::measured::ycsb_narrow;
use candide_compiled::tpcc::measured::tpcc;
use candide_harness::Variant;
use candide_harness::figure::{Outline, Panel, Published, Shown, Workload, plain};
use candide_workloads::tpcc::{Mix, Splits, Tpcc};

use super::Bounds;

/// Warehouses of Figure 3.
const WAREHOUSES: usize = 8;

/// The mechanisms of the paper, by their names in this engine. Its two-phase locking waits a few
/// rounds and then aborts.
const MECHANISMS: [&str; 5] = ["occ", "tictoc", "2pl-no-wait", "swiss", "adaptive"];

/// Returns what the paper says of a line.
fn published(is_tpcc: bool, is_fine: bool, mechanism: &str) -> Option<Published> {
    match (is_tpcc, is_fine, mechanism) {
        (true, false, "occ") => {
            Published::aborted(0.1757, "17.57 % aborted at 64 threads, 30.91 % at 128")
        }
        (true, false, "tictoc") => Published::aborted(
            0.0979,
            "9.79 % aborted at 64 threads; best at 96 threads, behind 2pl at 128",
        ),
        (true, false, "2pl-no-wait") => Published::words("ahead of tictoc at 128 threads"),
        (true, true, "occ") => Published::aborted(
            0.0175,
            "1.75 % aborted at 128 threads; 1.37 times coarse tictoc at 96, 1.14 times fine tictoc at 128",
        ),
        (true, true, "tictoc") => {
            Published::words("never ahead of fine occ, but gains on those that lock")
        }
        (true, true, "adaptive") => Published::words("slightly ahead of occ at 32 threads"),
        (true, true, _) => Published::words("faster than with coarse locks, behind occ"),
        (false, false, "tictoc") => {
            Published::words("ahead of occ with few threads, far behind it with many")
        }
        (false, false, "2pl-no-wait" | "swiss" | "adaptive") => {
            Published::words("slower than occ throughout")
        }
        (false, true, "occ" | "swiss") => Published::words("gains most"),
        (false, true, _) => Published::words("faster than with coarse ones"),
        _ => None,
    }
}

pub(super) fn outline(bounds: &Bounds) -> Outline {
    let mut outline = Outline {
        name: "granularity",
        title: "One timestamp to a row (coarse), and several (fine)",
        source: "Huang et al., The Impact of Timestamp Granularity in Optimistic Concurrency Control, 2018, Figures 2 and 3",
        measured: "measured there with up to 128 threads on eight Xeons of 192 cores together, runs of 15 s, the median of 7",
        shows: Shown::Throughput,
        cases: Vec::new(),
        lines: Vec::new(),
        claims: Vec::new(),
        deviations: Vec::new(),
    };
    let Bounds { threads, room, .. } = bounds;
    let ycsb = || ycsb_narrow(room.narrow());
    let tpcc_eight = || {
        let knobs = Tpcc {
            mix: Mix::Three,
            hash_index: false,
            splits: Splits::DistrictsAndCustomers,
            ..Tpcc::published()
        };
        tpcc(room.tpcc(knobs, WAREHOUSES))
    };
    let ycsb_title = "Figure 2, YCSB-like: 16 operations, half of them writes, theta 0.9";
    let tpcc_title = "Figure 3, TPC-C: new-order, payment and order-status, eight warehouses";
    for (title, workload) in
        [(ycsb_title, Workload::Fixed(&ycsb)), (tpcc_title, Workload::Fixed(&tpcc_eight))]
    {
        let is_tpcc = title == tpcc_title;
        let panel = Panel { title, threads, workload };
        let mut base = None;
        for (ts, grain) in [(false, "coarse"), (true, "fine")] {
            for protocol in MECHANISMS {
                let published = published(is_tpcc, ts, protocol);
                let variant = Variant { cu: true, ts, ..plain(protocol) };
                let line =
                    outline.line(&panel, format!("{protocol}, {grain}"), &variant, base, published);
                base = base.or(Some(line));
            }
        }
    }
    outline.deviations.extend(
        [
            "a policy that locks is a way to conflict less here: everything read is validated, also under two-phase locking; deadlocks end as \
             there, by aborts after a short wait",
            "swiss keeps its ticket from attempt to attempt and kills no later transaction of a thread, as SwissTM does; in the study it \
             draws another ticket after each abort",
            "adaptive locks are chosen for a group of columns here, with the probabilities of the study",
            "takings are updated at commit in both settings, as that counter is there; so are a district's, what customers owe, what is left in \
             stock and who delivers an order, which are read and written there",
            "there a million transactions are drawn beforehand for each thread and replayed; here 200000 at most",
            "order-status is safe from phantoms here; customers are found by a list for each last name, where that study scans an \
             index",
        ]
        .map(str::to_string),
    );
    if bounds.most() < WAREHOUSES {
        outline.deviations.push(format!(
            "{WAREHOUSES} warehouses are more than there are threads: orders of TPC-C hardly meet"
        ));
    }
    outline
}
