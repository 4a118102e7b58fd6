//! "The Impact of Timestamp Granularity in Optimistic Concurrency Control" (2018): Figures 2 and 3.

use candide_compiled::keys::measured::ycsb_narrow;
use candide_compiled::tpcc::measured::tpcc;
use candide_harness::Variant;
use candide_harness::figure::{Claim, Outline, Panel, Published, Quantity, Workload, plain};
use candide_workloads::tpcc::{Mix, Splits, Tpcc};

use super::bounds::Bounds;

/// Warehouses of Figure 3.
const WAREHOUSES: usize = 8;

/// The mechanisms of the paper, by their names in this engine. Two-phase locking in the paper waits
/// a few rounds and then aborts.
const MECHANISMS: [&str; 5] = ["occ", "tictoc", "2pl-no-wait", "swiss", "adaptive"];

/// Returns the paper's statement about a line.
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

/// The lines of a part: the coarse ones and the fine ones, in the order of [`MECHANISMS`].
type Lines = [[usize; MECHANISMS.len()]; 2];

/// The place of `tictoc` in [`MECHANISMS`]. The mechanisms behind it lock; that of `occ` is 0.
const TICTOC: usize = 1;

/// Claims that every mechanism gains by fine timestamps.
fn gains(lines: Lines, figure: &str) -> Vec<Claim> {
    let [coarse, fine] = lines;
    let gains = |place: usize| {
        let mechanism = MECHANISMS[place];
        let text = format!("{figure}: {mechanism} is faster with fine timestamps (at least 1)");
        Claim::speed(text, fine[place], [coarse[place]], 1.0..=f64::INFINITY)
    };
    (0..MECHANISMS.len()).map(gains).collect()
}

/// Returns the claims about Figure 2.
fn of_ycsb(lines: Lines) -> Vec<Claim> {
    let [[occ, _, locking @ ..], _] = lines;
    let slower = |(line, place): (usize, usize)| {
        let mechanism = MECHANISMS[place];
        let text = format!("Figure 2a: {mechanism} is slower than occ (at most 1)");
        Claim::speed(text, line, [occ], 0.0..=1.0)
    };
    let mut claims: Vec<Claim> = locking.into_iter().zip(TICTOC + 1..).map(slower).collect();
    claims.extend(gains(lines, "Figure 2"));
    claims
}

/// Returns the claims about Figure 3.
fn of_tpcc(lines: Lines) -> Vec<Claim> {
    let [coarse, fine] = lines;
    let without = |all: [usize; MECHANISMS.len()], place: usize| {
        all.into_iter().filter(|line| *line != all[place]).collect::<Vec<_>>()
    };
    let mut claims = vec![
        Claim::speed(
            "Figure 3a: with coarse timestamps, tictoc is the fastest (at least 1 of the best other)",
            coarse[TICTOC],
            without(coarse, TICTOC),
            1.0..=f64::INFINITY,
        ),
        Claim::ratio(
            "Figure 3a: with coarse timestamps, tictoc aborts much less than occ (at most 0.8)",
            coarse[TICTOC],
            Quantity::Aborted,
            [coarse[0]],
            0.0..=0.8,
        ),
        Claim::speed(
            "Figure 3b: with fine timestamps, occ is the fastest (at least 0.97 of the best other)",
            fine[0],
            without(fine, 0),
            0.97..=f64::INFINITY,
        ),
        Claim::ratio(
            "Figure 3b: by fine timestamps, occ loses most of its aborts (at most 0.2 are left)",
            fine[0],
            Quantity::Aborted,
            [coarse[0]],
            0.0..=0.2,
        ),
        Claim::speed(
            "Section 4.3: occ with fine timestamps is faster than tictoc with coarse ones (at least 1)",
            fine[0],
            [coarse[TICTOC]],
            1.0..=f64::INFINITY,
        ),
    ];
    claims.extend(gains(lines, "Figure 3"));
    claims
}

pub(super) fn outline(bounds: &Bounds) -> Outline {
    let mut outline = Outline::empty(
        "granularity",
        "One timestamp to a row (coarse), and several (fine)",
        "Huang et al., The Impact of Timestamp Granularity in Optimistic Concurrency Control, 2018, Figures 2 and 3",
        "measured in the paper with up to 128 threads on eight Xeons of 192 cores together, runs of 15 s, the median of 7",
        bounds.opacity,
    );
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
        let lines = [(false, "coarse"), (true, "fine")].map(|(ts, grain)| {
            MECHANISMS.map(|protocol| {
                let published = published(is_tpcc, ts, protocol);
                let variant = Variant { cu: true, ts, ..plain(protocol) };
                let label = format!("{protocol}, {grain}");
                let line = outline.line(&panel, label, &variant, base, published);
                base = base.or(Some(line));
                line
            })
        });
        outline.claims.extend(if is_tpcc { of_tpcc(lines) } else { of_ycsb(lines) });
    }
    outline.deviations.extend(
        [
            "a policy that locks is a way to conflict less here: everything read is validated, also under two-phase locking; deadlocks end as in the study, by aborts after a short wait",
            "swiss keeps its ticket from attempt to attempt and kills no later transaction of a thread, as SwissTM does; in the study it \
             draws another ticket after each abort",
            "adaptive locks are chosen for a group of columns here, with the probabilities of the study",
            "the sums that warehouses have taken are updated at commit in both settings, as in the study; so are those of districts, balances, stocks and carriers, which are read and written in the study",
            "in the study a million transactions are drawn beforehand for each thread and replayed; here 200000 at most",
            "order-status is safe from phantoms here; customers are found by a list for each last name, where the study scans an index",
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
