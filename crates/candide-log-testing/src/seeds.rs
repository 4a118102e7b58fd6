//! Histories that a seed decides, one after another.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::env;

/// How often each event has occurred.
pub type Events = BTreeMap<&'static str, u64>;

/// Plays the histories of seeds that follow one another. Returns their number, and how often each
/// event has occurred in all of them. `counts` are the numbers of histories: usually, and with
/// `CANDIDE_FULL`. `CANDIDE_HISTORIES` is another number, and `CANDIDE_SEED` the first seed.
///
/// # Panics
/// `play` returns what is wrong; the message has the seed.
pub fn play_seeds(counts: [u64; 2], play: impl Fn(u64) -> Result<Events, String>) -> (u64, Events) {
    let variable = |name: &str| env::var(name).ok()?.parse().ok();
    let usual = counts[usize::from(env::var_os("CANDIDE_FULL").is_some())];
    let count = variable("CANDIDE_HISTORIES").unwrap_or(usual);
    let first = variable("CANDIDE_SEED").unwrap_or(0);
    let mut events = Events::new();
    for seed in first..first + count {
        let of_history = play(seed).unwrap_or_else(|why| panic!("history of seed {seed}: {why}"));
        for (event, count) in of_history {
            *events.entry(event).or_default() += count;
        }
    }
    (count, events)
}
