//! Measures how long a session that waits for a change takes to wake up: from the return of the
//! call that commits the change to the first line of the closure that runs again.
//!
//! ```text
//! cargo run --release -p candide-measure --bin wakes -- [--rounds 5000] [--pause 200]
//! ```
//!
//! Two threads change one row by turns, and each waits for the other by `Tx::check`. Before a
//! change a thread spins for a pause, in microseconds, in which the other one goes to sleep. The
//! second line of each protocol counts from the beginning of the call: the closure may run before
//! the call returns, which the first line shows as no time. `park` is the same with
//! `std::thread::park`: what the system takes. The numbers say little unless a core is idle; the
//! last line is the load.

use candide::{Abort, Database, Mvcc, Mvto, Occ, Protocol, Record, TicToc};
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

#[derive(Record, Clone, Copy)]
struct Turn {
    #[key]
    id: u64,
    number: u64,
}

/// What two threads do by turns: turn `n` is that of thread `n % 2`.
trait Game: Sync {
    /// Sleeps until turn `number` comes. Returns the time at which the thread has gone on.
    fn wait(&self, number: u64) -> Instant;

    /// Lets turn `number` come.
    fn pass(&self, number: u64);
}

struct Rows<P: Protocol> {
    db: Database<P>,
    turns: candide::Table<Turn, P>,
}

impl<P: Protocol> Rows<P> {
    fn new(db: Database<P>) -> Result<Rows<P>, candide::Error> {
        let turns = db.table::<Turn>("turns")?;
        db.run(|tx| turns.insert(tx, Turn { id: 0, number: 0 }))?;
        Ok(Rows { db, turns })
    }
}

impl<P: Protocol> Game for Rows<P> {
    fn wait(&self, number: u64) -> Instant {
        let begun: Result<Instant, Abort> = self.db.run(|tx| {
            let begun = Instant::now();
            tx.check(self.turns.read(tx, 0, Turn::NUMBER)? >= number)?;
            Ok(begun)
        });
        begun.expect("nothing refuses the transaction")
    }

    fn pass(&self, number: u64) {
        let passed = self.db.run(|tx| self.turns.update(tx, 0, Turn::NUMBER.set(number)));
        passed.expect("nothing refuses the transaction");
    }
}

struct Parked {
    turn: AtomicU64,
    threads: [std::sync::OnceLock<Thread>; 2],
}

impl Game for Parked {
    fn wait(&self, number: u64) -> Instant {
        self.threads[(number % 2) as usize].get_or_init(thread::current);
        loop {
            let begun = Instant::now();
            if self.turn.load(Ordering::SeqCst) >= number {
                return begun;
            }
            thread::park();
        }
    }

    fn pass(&self, number: u64) {
        self.turn.store(number, Ordering::SeqCst);
        if let Some(thread) = self.threads[(number % 2) as usize].get() {
            thread.unpark();
        }
    }
}

/// Plays `rounds` turns, and prints percentiles of the times to wake up.
fn measure(name: &str, game: &impl Game, rounds: u64, pause: Duration) {
    let origin = Instant::now();
    let nanoseconds = |at: Instant| at.duration_since(origin).as_nanos() as u64;
    // When the call that passes each turn has begun, and has returned.
    let times_of_calls = || (0..=rounds + 1).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let (called, passed) = (times_of_calls(), times_of_calls());
    let pass = |number: u64| {
        called[number as usize].store(nanoseconds(Instant::now()), Ordering::SeqCst);
        game.pass(number);
        passed[number as usize].store(nanoseconds(Instant::now()), Ordering::SeqCst);
    };
    let play = |thread: u64| {
        let mut times = Vec::new();
        for number in (1..=rounds).filter(|number| number % 2 == thread) {
            let begun = nanoseconds(game.wait(number));
            let paused = Instant::now();
            while paused.elapsed() < pause {
                std::hint::spin_loop();
            }
            // The thread that has passed the turn may not have noted the time yet.
            let passed_at = loop {
                match passed[number as usize].load(Ordering::SeqCst) {
                    0 => thread::yield_now(),
                    at => break at,
                }
            };
            let called_at = called[number as usize].load(Ordering::SeqCst);
            times.push((begun.saturating_sub(passed_at), begun.saturating_sub(called_at)));
            pass(number + 1);
        }
        times
    };
    let times = thread::scope(|scope| {
        let other = scope.spawn(|| play(0));
        pass(1);
        let mut times = play(1);
        times.extend(other.join().expect("the thread has played"));
        times
    });
    let (returns, calls): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    for (since, mut times) in [(name, returns), ("", calls)] {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1e3;
        let (half, most, nearly, all) = (at(0.5), at(0.9), at(0.99), at(1.0));
        println!("{since:<8} {half:>9.1} {most:>9.1} {nearly:>9.1} {all:>9.1}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut rounds, mut pause) = (5_000, Duration::from_micros(200));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value: u64 = arguments.next().ok_or("each option has a value")?.parse()?;
        match argument.as_str() {
            "--rounds" => rounds = value.max(2),
            "--pause" => pause = Duration::from_micros(value),
            unknown => return Err(format!("there is no option {unknown}").into()),
        }
    }
    println!("{:<8} {:>9} {:>9} {:>9} {:>9}", "us", "p50", "p90", "p99", "max");
    let parked = Parked { turn: AtomicU64::new(0), threads: Default::default() };
    measure("park", &parked, rounds, pause);
    measure("occ", &Rows::new(Database::<Occ>::default())?, rounds, pause);
    measure("tictoc", &Rows::new(Database::<TicToc>::default())?, rounds, pause);
    measure("mvcc", &Rows::new(Database::<Mvcc>::default())?, rounds, pause);
    measure("mvto", &Rows::new(Database::<Mvto>::default())?, rounds, pause);
    println!("load {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    Ok(())
}
