//! Figures 4 and 7: the effect of each choice below the protocol, and grades of the protocols.

use candide::experiments::Factor;
use candide_harness::Variant;
use candide_harness::figure::{
    Claim, Compared, Graded, Outline, Panel, Published, Quantity, plain,
};

use super::super::bounds::Bounds;
use super::{TPCC_EACH, TPCC_ONE, at_least, at_most, empty, with_panels};

/// The protocols of the paper, by their names in this engine, with the titles of their panels: one
/// warehouse, and one for each thread.
const PANELS: [(&str, [&str; 2]); 3] = [
    ("occ", ["occ: TPC-C, one warehouse", "occ: TPC-C, a warehouse for each thread"]),
    ("tictoc", ["tictoc: TPC-C, one warehouse", "tictoc: TPC-C, a warehouse for each thread"]),
    ("mvto", ["mvto: TPC-C, one warehouse", "mvto: TPC-C, a warehouse for each thread"]),
];

/// Returns whether the factor has an effect under the protocol.
fn concerns(factor: Factor, protocol: &str) -> bool {
    match factor {
        Factor::NoWait => protocol != "mvto",
        factor => !factor.is_of_timestamps() || protocol == "tictoc",
    }
}

/// Returns the column of Figure 7 to which the factor belongs; `None` if it belongs to none.
fn about(factor: Factor) -> Option<&'static str> {
    match factor {
        Factor::NoBackoff => Some("contention regulation"),
        Factor::SystemAllocator | Factor::Mimalloc | Factor::Jemalloc => Some("memory allocation"),
        Factor::UnwindingAborts => Some("aborts"),
        Factor::OrderedOnly => Some("index types"),
        Factor::SortedLocks | Factor::SortedKeys | Factor::NoWait => Some("deadlock avoidance"),
        Factor::PlainSets => Some("transaction internals"),
        Factor::ContendedKeys => Some("contention-aware index"),
        _ => None,
    }
}

/// Returns the paper's statement about a factor under OCC.
fn published(factor: Factor, panel: usize) -> Option<Published> {
    match (factor, panel) {
        (Factor::NoBackoff, TPCC_ONE) => {
            Published::words("varies much, and collapses at the highest contention")
        }
        (Factor::SystemAllocator, TPCC_ONE) => {
            Published::ratio(1.0 / 1.6, 1.0 / 1.6, "1/1.6 (glibc)")
        }
        (Factor::SystemAllocator, _) => Published::words("stops scaling (glibc)"),
        (Factor::Jemalloc, TPCC_ONE) => Published::words("better than glibc, but not by much"),
        (Factor::UnwindingAborts, TPCC_ONE) => {
            Published::ratio(1.0 / 1.5, 1.0 / 1.2, "1/1.2 to 1/1.5 (C++ exceptions)")
        }
        (Factor::OrderedOnly, _) => {
            Published::ratio(1.0 / 1.2, 1.0 / 1.2, "1/1.2 at any contention")
        }
        (Factor::ContendedKeys, _) => {
            Published::words("no great effect on the whole; see `delivery`")
        }
        (Factor::SortedLocks, _) => Published::ratio(0.9, 0.9, "about 10 % (in the text only)"),
        _ => None,
    }
}

/// Returns the claim of the paper about the line of a factor under OCC, which is compared with the
/// line `base`; `None` if there is none.
fn claim(factor: Factor, panel: usize, line: usize, base: usize) -> Option<Claim> {
    let (what, accepted) = match (factor, panel) {
        (Factor::NoBackoff, TPCC_ONE) => ("costs much (at most 0.8)", at_most(0.8)),
        (Factor::SystemAllocator, _) => ("costs much (at most 0.8)", at_most(0.8)),
        (Factor::UnwindingAborts, TPCC_ONE) => {
            ("costs a sixth or more (at most 0.9)", at_most(0.9))
        }
        (Factor::OrderedOnly, _) => ("costs a sixth (at most 0.9)", at_most(0.9)),
        (Factor::ContendedKeys, _) => ("costs little on the whole (at least 0.9)", at_least(0.9)),
        (Factor::SortedLocks, _) => ("costs about a tenth (0.8 to 1)", 0.8..=1.0),
        _ => return None,
    };
    let place = if panel == TPCC_ONE { "4a" } else { "4b" };
    Some(Claim::speed(format!("Figure {place}: {factor} {what}"), line, [base], accepted))
}

/// The factors of Figure 4. According to the paper, their effects are as great under its other
/// protocols.
const DRAWN: [Factor; 4] =
    [Factor::NoBackoff, Factor::SystemAllocator, Factor::UnwindingAborts, Factor::OrderedOnly];

/// Returns the claim that a factor of Figure 4 has the same effect on a protocol as on OCC, or a
/// greater one for the memory allocation of MVTO.
fn similar(protocol: &str, factor: Factor, line: usize, occ: usize) -> Claim {
    let (compared, accepted, what) = if (protocol, factor) == ("mvto", Factor::SystemAllocator) {
        (Compared::RatioTo(vec![occ]), at_most(1.0), "costs more than under occ (at most 1 of it)")
    } else {
        (
            Compared::DifferenceFrom(occ),
            at_most(0.1),
            "costs about as much as under occ (within 0.1)",
        )
    };
    let text = format!("Section 4: under {protocol}, {factor} {what}");
    let quantity = Quantity::OfBase;
    Claim { text, line, quantity, compared, accepted, least_threads: 1 }
}

/// Returns the outline of Figures 4 and 7.
pub(crate) fn factors(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "factors",
        "What each choice below the protocol is worth: TPC-C, the full mix",
        "Huang et al., VLDB 2020, Figures 4 and 7",
        bounds,
    );
    with_panels(bounds, &[TPCC_ONE, TPCC_EACH], |panel_index, panel| {
        // The lines of `occ`, which come first, by their factors.
        let mut of_occ: Vec<(Factor, usize)> = Vec::new();
        for (protocol, titles) in PANELS {
            let panel = Panel { title: titles[usize::from(panel_index == TPCC_EACH)], ..*panel };
            let plain = plain(protocol);
            let base =
                outline.line(&panel, format!("{protocol}, good choices only"), &plain, None, None);
            let concerning = |factor: &Factor| factor.is_available() && concerns(*factor, protocol);
            for choice in Factor::ALL.into_iter().filter(concerning) {
                let variant = Variant { factors: vec![choice], ..plain.clone() };
                let published = published(choice, panel_index).filter(|_| protocol == "occ");
                let label = format!("{protocol}, {choice}");
                let line = outline.line(&panel, label, &variant, Some(base), published);
                let occ = of_occ.iter().find(|(known, _)| *known == choice);
                if protocol == "occ" {
                    of_occ.push((choice, line));
                    outline.claims.extend(claim(choice, panel_index, line, base));
                } else if let Some(&(_, occ)) =
                    occ.filter(|_| panel_index == TPCC_ONE && DRAWN.contains(&choice))
                {
                    outline.claims.push(similar(protocol, choice, line, occ));
                }
                if panel_index == TPCC_ONE {
                    let (choice, about) = (choice.name(), about(choice));
                    outline.grades.push(Graded { protocol, choice, about, line });
                }
            }
        }
    });
    differences(&mut outline);
    outline
}

/// Notes how the choices differ from those of the paper.
fn differences(outline: &mut Outline) {
    outline.deviations.extend(
        [
            "mimalloc, jemalloc, contended-keys, sorted-locks, sorted-keys, plain-sets, fixed-hash, no-wait, compressed-timestamps and preemptive-aborts are not in \
             Figure 4; its text has jemalloc, as an option of Silo. tictoc and mvto are in the text only",
            "Figure 7 grades systems by their choices; here each protocol of the engine is graded by each possible choice. Of `transaction internals` there is one choice, plain-sets",
            "system-allocator, mimalloc and jemalloc leave the arrays of hash indexes where they are, and threads take blocks of \
             one table one after the other; unwinding-aborts unwinds as Rust's panics do, where C++ exceptions were thrown",
        ]
        .map(str::to_string),
    );
    if !Factor::Jemalloc.is_available() {
        let how = "jemalloc is left out; a command built with `--features jemalloc` measures it";
        outline.deviations.push(how.to_string());
    }
    super::compare_protocols(outline);
}
