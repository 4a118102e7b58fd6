//! Histories that a seed decides, some at a time.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// How often each event has occurred.
pub type Events = BTreeMap<&'static str, u64>;

/// The histories that are played at a time, which mostly wait.
const AT_ONCE: u64 = 4;

/// Plays the histories of seeds that follow one another. Returns their number, and how often each
/// event has occurred in all of them. `counts` are the numbers of histories: usually, and with
/// `CANDIDE_FULL`. `CANDIDE_HISTORIES` is another number, `CANDIDE_SEED` the first seed, and
/// `CANDIDE_AT_ONCE` how many are played at a time.
///
/// # Panics
/// `play` returns what is wrong; the message has the seed.
pub fn play_seeds(
    counts: [u64; 2],
    play: impl Fn(u64) -> Result<Events, String> + Sync,
) -> (u64, Events) {
    let variable = |name: &str| env::var(name).ok()?.parse().ok();
    let usual = counts[usize::from(env::var_os("CANDIDE_FULL").is_some())];
    let count = variable("CANDIDE_HISTORIES").unwrap_or(usual);
    let first = variable("CANDIDE_SEED").unwrap_or(0);
    let at_once = variable("CANDIDE_AT_ONCE").unwrap_or(AT_ONCE);
    let next = AtomicU64::new(first);
    let play_some = || {
        let mut events = Events::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                return events;
            }
            let of_history = play(seed).unwrap_or_else(|why| {
                // The others begin no more.
                next.store(first + count, Ordering::Relaxed);
                panic!("history of seed {seed}: {why}")
            });
            add(&mut events, of_history);
        }
    };
    let mut events = Events::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(play_some)).collect();
        threads.into_iter().for_each(|thread| match thread.join() {
            Ok(of_thread) => add(&mut events, of_thread),
            Err(panic) => std::panic::resume_unwind(panic),
        });
    });
    (count, events)
}

fn add(events: &mut Events, more: Events) {
    for (event, count) in more {
        *events.entry(event).or_default() += count;
    }
}
