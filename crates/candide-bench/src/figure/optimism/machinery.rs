//! What is left to concurrency control where no transactions meet: each protocol beside one lock.

use candide_harness::figure::{Claim, Outline, plain};

use super::super::bounds::Bounds;
use super::{PROTOCOLS, TPCC_EACH, YCSB_A, YCSB_B, at_least, empty, with_panels};

/// Returns the outline of the figure, which is in no paper.
pub(crate) fn machinery(bounds: &Bounds) -> Outline {
    let mut outline = empty(
        "machinery",
        "What each protocol costs where no transactions meet, beside one lock for the whole database",
        "no paper; the aim is this engine's",
        bounds,
    );
    with_panels(bounds, &[TPCC_EACH, YCSB_A, YCSB_B], |_, panel| {
        let base = outline.line(panel, "global-lock", &plain("global-lock"), None, None);
        for protocol in PROTOCOLS {
            let line = outline.line(panel, protocol, &plain(protocol), Some(base), None);
            if protocol == "occ" {
                let text = format!("{}: occ costs a twentieth (at least 0.95)", panel.title);
                outline.claims.push(Claim::speed(text, line, [base], at_least(0.95)));
            }
        }
    });
    outline.deviations.push(
        "global-lock runs one transaction at a time, keeps no versions and validates nothing, so that the rest is what the others add; with one \
         thread its lock is free"
            .to_string(),
    );
    outline
}
