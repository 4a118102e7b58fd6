//! Settings in words, and the notes that go with results.

use super::measurement::{Measurement, plain};
use super::number::grouped;

/// Returns a setting in a few words.
pub(crate) fn label(result: &Measurement) -> String {
    let off = [(result.cu, ", cu off"), (result.ts, ", ts off")];
    let off: String = off.iter().filter(|(on, _)| !on).map(|(_, words)| *words).collect();
    let plural = if result.threads == 1 { "" } else { "s" };
    format!(
        "{}{} {}, {} thread{plural}{off}",
        result.workload,
        result.variety,
        protocol(result),
        result.threads
    )
}

/// Returns the protocol, with a mark if bad choices were made.
pub(crate) fn protocol(result: &Measurement) -> String {
    let factors = if result.factors.is_empty() { "" } else { " (handicapped)" };
    format!("{}{factors}", result.protocol_words())
}

/// The fraction of the requested rate below which the report notes that the rate was not attained.
const ATTAINED: f64 = 0.98;

/// Returns a note if fewer transactions ended than the requested rate demands.
pub(super) fn unattained(result: &Measurement) -> Option<String> {
    let asked = result.params.get("rate")?.as_f64()?;
    let ended = (result.committed + result.user_aborted) as f64 / result.duration_s;
    (ended < asked * ATTAINED).then(|| {
        let (what, asked, ended) = (label(result), grouped(asked), grouped(ended));
        format!("{what}: {asked} transactions a second were asked for and {ended} ended; latencies leave out transactions that were not begun")
    })
}

/// Returns, in words, the knobs of `result` whose values differ in other results of the same
/// workload.
pub(super) fn variety(result: &Measurement, results: &[Measurement]) -> String {
    let namesakes = || results.iter().filter(|other| other.workload == result.workload);
    let knobs = result.params.as_object().into_iter().flatten();
    let differing = knobs
        .filter(|(knob, value)| namesakes().any(|other| other.params.get(knob) != Some(value)));
    differing
        .map(|(knob, value)| format!(", {} {}", knob.replace('_', " "), plain(value)))
        .collect()
}
