//! A model of one cell with a second word. The tests explore all interleavings of a few threads
//! that follow LK3 to LK6, and see that without any one of these rules something goes wrong.

use std::collections::{BTreeSet, HashSet};

/// A cell: its TID word without the version, and its second word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Cell {
    locked: bool,
    rask: bool,
    wask: bool,
    readers: u8,
    written: bool,
}

/// The free cells of tables under an optimistic, an adaptive and a two-phase policy.
const COLD: Cell = Cell { locked: false, rask: false, wask: false, readers: 0, written: false };
const WARM: Cell = Cell { wask: true, ..COLD };
const HOT: Cell = Cell { rask: true, ..WARM };

/// The place of a thread in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Thread {
    // A writer. The writer's commit looks at the flags, and locks the TID word.
    Writer,
    /// The writer has seen an unlocked TID word without WASK, and is about to exchange it.
    Exchanges,
    /// The writer has seen WASK, and waits for the second word.
    Asks,
    /// The writer has been granted the second word.
    Granted,
    /// The writer holds the second word, and waits for the TID word.
    Second,
    /// The thread holds the TID word, and waits for the second word (only without
    /// `SecondWordFirst`).
    First,
    /// Stores words, under the TID word; and under the second word, if `asked`.
    Installs {
        asked: bool,
    },
    /// The thread has released the TID word, and holds the second word. The thread may change the
    /// flags.
    Tosses,

    // The thread reads a row of a table with a policy.
    Reader,
    /// The reader has seen RASK, and waits for the second word.
    AsksToRead,
    /// The reader has been granted the second word for reading.
    Shares,
    /// The reader holds the second word for reading, and has seen RASK since.
    Protected,
    /// The thread has read. As the last reader, it may turn its lock into a writer's.
    Leaves,
    /// The thread was the last reader, and is about to clear RASK.
    Cools,

    // The thread changes the table's policy.
    /// The thread adds flags.
    Sets,
    /// The thread clears flags, and waits for the second word.
    Clears,
    /// The thread clears flags, and holds the second word.
    ClearsNow,

    /// The thread holds the second word for writing, and is about to release it.
    Releases,
    Done,
}

use Thread::*;

/// A rule that the model can do without, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// A writer that has seen no WASK locks the TID word only if the flag is still not set.
    ExchangeWithFlags,
    /// Flags are set only in an unlocked TID word (LK3).
    SetUnlocked,
    /// Flags are cleared only under the second word (LK4).
    ClearUnderSecondWord,
    /// A session that has been granted the second word looks at the flags again (LK5).
    LookAgain,
    /// A writer takes the second word before the TID word (LK6).
    SecondWordFirst,
    /// A reader makes its lock a writer's only if it is the last reader.
    UpgradeAlone,
}

/// Returns the states in which one step of a thread may end.
fn steps(thread: Thread, cell: Cell, without: Option<Rule>) -> Vec<(Thread, Cell)> {
    let holds = |rule| without != Some(rule);
    let free = cell.readers == 0 && !cell.written;
    let exchange = |wanted: Cell| {
        let changed = Cell { rask: wanted.rask, wask: wanted.wask, ..cell };
        if cell.locked && holds(Rule::SetUnlocked) { cell } else { changed }
    };
    let stay = Vec::new;
    match thread {
        Writer if cell.wask && free && !cell.locked && !holds(Rule::SecondWordFirst) => {
            vec![(Asks, cell), (First, Cell { locked: true, ..cell })]
        }
        Writer if cell.wask => vec![(Asks, cell)],
        Writer if cell.locked => stay(),
        Writer => vec![(Exchanges, cell)],
        Exchanges if cell.locked || cell.wask && holds(Rule::ExchangeWithFlags) => {
            vec![(Writer, cell)]
        }
        Exchanges => vec![(Installs { asked: false }, Cell { locked: true, ..cell })],
        Clears if !holds(Rule::ClearUnderSecondWord) => vec![(Done, exchange(COLD))],
        Asks | First | Clears if !free => stay(),
        Asks => vec![(Granted, Cell { written: true, ..cell })],
        Granted if !cell.wask && holds(Rule::LookAgain) => {
            vec![(Writer, Cell { written: false, ..cell })]
        }
        Granted => vec![(Second, cell)],
        Second if cell.locked => stay(),
        Second => vec![(Installs { asked: true }, Cell { locked: true, ..cell })],
        First => vec![(Installs { asked: true }, Cell { written: true, ..cell })],
        Installs { asked } => {
            vec![(if asked { Tosses } else { Done }, Cell { locked: false, ..cell })]
        }
        // The thread changes nothing, or gives the cell the flags of any policy.
        Tosses => [cell, COLD, WARM, HOT].map(|wanted| (Releases, exchange(wanted))).to_vec(),
        Releases => vec![(Done, Cell { written: false, ..cell })],

        Reader => vec![(if cell.rask { AsksToRead } else { Done }, cell)],
        AsksToRead if cell.written => stay(),
        AsksToRead => vec![(Shares, Cell { readers: cell.readers + 1, ..cell })],
        Shares if !cell.rask && holds(Rule::LookAgain) => vec![(Leaves, cell)],
        Shares => vec![(Protected, cell)],
        Protected => vec![(Leaves, cell)],
        Leaves => {
            let left = (Done, Cell { readers: cell.readers.saturating_sub(1), ..cell });
            let upgraded = (Cools, Cell { readers: 0, written: true, ..cell });
            let may_upgrade = cell.readers == 1 || cell.readers > 1 && !holds(Rule::UpgradeAlone);
            if may_upgrade { vec![left, upgraded] } else { vec![left] }
        }
        Cools => vec![(Releases, exchange(Cell { rask: false, ..cell }))],

        Sets if cell.locked && holds(Rule::SetUnlocked) => stay(),
        Sets => [WARM, HOT].map(|wanted| (Done, exchange(wanted))).to_vec(),
        Clears => vec![(ClearsNow, Cell { written: true, ..cell })],
        ClearsNow => vec![(Releases, exchange(COLD))],
        Done => stay(),
    }
}

/// Returns the rule that a state breaks.
fn faults(threads: &[Thread], is_last: bool) -> impl Iterator<Item = &'static str> {
    let count = |is: fn(&Thread) -> bool| threads.iter().filter(|thread| is(thread)).count();
    let installing = count(|thread| matches!(thread, Installs { .. }));
    let protected = count(|thread| *thread == Protected);
    let done = count(|thread| *thread == Done);
    let faults = [
        (installing > 0 && protected > 0, "a version is installed under a reader"),
        (installing > 1, "two install"),
        (is_last && done < threads.len(), "a thread waits for ever"),
    ];
    faults.into_iter().filter_map(|(is_so, fault)| is_so.then_some(fault))
}

/// Explores all interleavings of threads that begin at the places `threads`. Returns the number of
/// states, and the broken rule.
fn explore(
    cell: Cell,
    threads: &[Thread],
    without: Option<Rule>,
) -> (usize, BTreeSet<&'static str>) {
    let first = (cell, threads.to_vec());
    let mut seen = HashSet::from([first.clone()]);
    let (mut fresh, mut found) = (vec![first], BTreeSet::new());
    while let Some((cell, threads)) = fresh.pop() {
        let mut is_last = true;
        for (index, &thread) in threads.iter().enumerate() {
            for (next, cell) in steps(thread, cell, without) {
                is_last = false;
                let mut threads = threads.clone();
                threads[index] = next;
                // The order of the threads does not matter.
                threads.sort_unstable();
                let state = (cell, threads);
                if seen.insert(state.clone()) {
                    fresh.push(state);
                }
            }
        }
        found.extend(faults(&threads, is_last));
    }
    (seen.len(), found)
}

/// Threads beside which the rules are explored, each list with all three kinds of cells.
const CASTS: [&[Thread]; 5] = [
    &[Writer, Reader, Sets],
    &[Writer, Writer, Reader, Reader],
    &[Writer, Writer, Reader, Sets, Clears],
    &[Writer, Reader, Reader, Sets, Sets],
    &[Writer, Writer, Writer, Reader, Clears],
];

fn explore_all(without: Option<Rule>) -> (usize, BTreeSet<&'static str>) {
    let (mut states, mut found) = (0, BTreeSet::new());
    for cast in CASTS {
        for cell in [COLD, WARM, HOT] {
            let (count, faults) = explore(cell, cast, without);
            states += count;
            found.extend(faults);
        }
    }
    (states, found)
}

#[test]
fn nothing_is_installed_under_a_reader_that_holds_the_second_word() {
    let (states, found) = explore_all(None);
    println!("{states} states");
    assert_eq!(found, BTreeSet::new());
    assert!(states > 5_000, "{states} states");
}

#[test]
fn leaving_out_any_rule_about_the_flags_fails_the_model() {
    const INSTALLED: &str = "a version is installed under a reader";
    const WAITS: &str = "a thread waits for ever";
    for (rule, fault) in [
        (Rule::ExchangeWithFlags, INSTALLED),
        (Rule::SetUnlocked, INSTALLED),
        (Rule::ClearUnderSecondWord, INSTALLED),
        (Rule::LookAgain, INSTALLED),
        (Rule::UpgradeAlone, INSTALLED),
        (Rule::SecondWordFirst, WAITS),
    ] {
        let (states, found) = explore_all(Some(rule));
        println!("without {rule:?}: {states} states, {found:?}");
        assert!(found.contains(fault), "without {rule:?}: {found:?}");
    }
}
