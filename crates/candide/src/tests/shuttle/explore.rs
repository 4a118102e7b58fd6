//! The choice of schedules, the count of distinct ones, and the replay of a schedule.
//!
//! A schedule is the sequence of tasks that the scheduler lets run, one for each step. Two kinds of
//! schedules take turns. In a random schedule, the next task is drawn at random. Each random
//! schedule has its own patience: the mean number of steps for which a task runs on, from one to
//! sixty-four. In a schedule of probabilistic concurrency testing [BK10], the task of highest
//! priority runs until it loses its priority at one of a few random moments.

use crate::sync::{Instant, Random};
use shuttle::scheduler::{PctScheduler, Schedule, Scheduler, Task, TaskId};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of steps after which a schedule counts as one that does not end. The number is fifty
/// times that of the scenes' steps.
const STEPS_MAX: usize = 200_000;
/// The size of a task's stack. A checker runs on such a stack.
const STACK_BYTES: usize = 256 << 10;
/// The depths of the schedules with priorities. A depth is the number of moments at which
/// priorities change, plus one.
const DEPTHS: [usize; 2] = [2, 4];

/// The limits of an exploration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) schedules: u64,
    /// The time after which no further schedule is begun; `None` if there is no such time.
    pub(super) until: Option<Instant>,
    /// Whether the number of each schedule is printed before the schedule runs. So the number is
    /// known even if the process crashes in the schedule.
    pub(super) traced: bool,
    /// The bits of the seed that distinguish schedules with equal steps.
    pub(super) options: u64,
}

/// The result of an exploration.
#[derive(Debug)]
pub(super) struct Explored {
    pub(super) run: u64,
    pub(super) distinct: usize,
    /// The last schedule and its error, if it failed; else `None`.
    pub(super) failure: Option<(Choices, String)>,
}

/// The choices that determine an execution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choices {
    /// The seed of the scene's own choices.
    pub(super) seed: u64,
    /// The task of each step.
    pub(super) steps: Vec<u8>,
}

impl Choices {
    /// Parses the output of `Display`: `seed:steps`. In `steps`, each letter is a task, with the
    /// number of its steps in a row.
    pub(super) fn parse(text: &str) -> Option<Choices> {
        let (seed, steps) = text.split_once(':')?;
        let mut choices = Choices { seed: seed.parse().ok()?, steps: Vec::new() };
        let mut rest = steps.trim();
        while let Some(task) = rest.bytes().next() {
            let task = task.is_ascii_lowercase().then(|| task - b'a')?;
            let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
            let times = if digits == 0 { 1 } else { rest[1..=digits].parse().ok()? };
            choices.steps.extend(std::iter::repeat_n(task, times));
            rest = &rest[1 + digits..];
        }
        Some(choices)
    }
}

impl std::fmt::Display for Choices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:", self.seed)?;
        for turn in self.steps.chunk_by(|one, next| one == next) {
            write!(f, "{}", char::from(b'a' + turn[0]))?;
            if turn.len() > 1 {
                write!(f, "{}", turn.len())?;
            }
        }
        Ok(())
    }
}

/// The record of the executions. The record is not part of the explored program, so its lock is
/// that of the standard library.
#[derive(Debug, Default)]
struct Log {
    run: u64,
    current: Choices,
    seen: HashSet<u64>,
    options: u64,
}

impl Log {
    /// Adds the execution that has ended to the record.
    fn close(&mut self) {
        if !self.current.steps.is_empty() {
            let mut hasher = DefaultHasher::new();
            (self.current.seed & self.options).hash(&mut hasher);
            self.current.steps.hash(&mut hasher);
            self.seen.insert(hasher.finish());
            self.run += 1;
        }
    }
}

fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A scheduler that lets other schedulers take turns, and records their choices.
struct Watch {
    ways: Vec<Box<dyn Scheduler + Send>>,
    budget: Budget,
    seeds: Random,
    log: Arc<Mutex<Log>>,
}

impl Watch {
    fn way(&mut self) -> &mut (dyn Scheduler + Send) {
        let turn = lock(&self.log).run as usize % self.ways.len();
        &mut *self.ways[turn]
    }
}

impl Scheduler for Watch {
    fn new_execution(&mut self) -> Option<Schedule> {
        lock(&self.log).close();
        let late = self.budget.until.is_some_and(|until| Instant::now() >= until);
        if late || lock(&self.log).run >= self.budget.schedules {
            return None;
        }
        if self.budget.traced {
            println!("schedule: {}", lock(&self.log).seen.len() + 1);
        }
        let schedule = self.way().new_execution()?;
        lock(&self.log).current = Choices { seed: self.seeds.next(), steps: Vec::new() };
        Some(schedule)
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let task = self.way().next_task(runnable, current, is_yielding)?;
        let number = u8::try_from(usize::from(task))
            .ok()
            .filter(|number| *number < 26)
            .expect("scenes are small");
        lock(&self.log).current.steps.push(number);
        Some(task)
    }

    fn next_u64(&mut self) -> u64 {
        self.seeds.next()
    }
}

/// A scheduler that chooses tasks at random. The scheduler draws a patience for each schedule.
struct Patient {
    random: Random,
    patience: u64,
}

impl Scheduler for Patient {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.patience = 1 << self.random.below(7);
        Some(Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let stays = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        if let Some(current) = stays.filter(|_| !is_yielding)
            && self.random.below(self.patience) != 0
        {
            return Some(current);
        }
        // A task that yields waits for another task, so another task is chosen.
        let others: Vec<TaskId> =
            runnable.iter().map(|task| task.id()).filter(|id| stays != Some(*id)).collect();
        match stays {
            Some(current)
                if others.is_empty()
                    || !is_yielding && self.random.below(runnable.len() as u64) == 0 =>
            {
                Some(current)
            }
            _ => Some(others[self.random.below(others.len() as u64) as usize]),
        }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.next()
    }
}

/// A scheduler that repeats earlier choices, as long as the chosen tasks can run.
struct Replay {
    choices: Choices,
    step: usize,
}

impl Scheduler for Replay {
    fn new_execution(&mut self) -> Option<Schedule> {
        Some(Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        _: bool,
    ) -> Option<TaskId> {
        let wanted =
            self.choices.steps.get(self.step).map(|number| TaskId::from(usize::from(*number)));
        let there = |id: &TaskId| runnable.iter().any(|task| task.id() == *id);
        if let Some(next) = wanted.filter(there) {
            self.step += 1;
            return Some(next);
        }
        if self.step < self.choices.steps.len() {
            println!("replay: left at step {}, where the engine goes another way now", self.step);
            self.step = self.choices.steps.len();
        }
        // Otherwise all tasks run in turn, so that the execution ends.
        let next = runnable
            .iter()
            .map(|task| task.id())
            .find(|id| current.is_some_and(|current| *id > current));
        Some(next.unwrap_or(runnable[0].id()))
    }

    fn next_u64(&mut self) -> u64 {
        0
    }
}

/// Plays a scene under the schedules that follow from `seed`, until one fails. Passes a seed to the
/// scene for the scene's own choices.
pub(super) fn explore(
    budget: Budget,
    seed: u64,
    scene: impl Fn(u64) + Send + Sync + 'static,
) -> Explored {
    let mut seeds = Random::seeded(seed);
    let mut ways: Vec<Box<dyn Scheduler + Send>> = Vec::new();
    for depth in DEPTHS {
        ways.push(Box::new(Patient { random: Random::seeded(seeds.next()), patience: 1 }));
        ways.push(Box::new(PctScheduler::new_from_seed(seeds.next(), depth, usize::MAX)));
    }
    run(ways, budget, seeds, None, scene)
}

/// Plays a scene once, with the same choices as before.
pub(super) fn replay(choices: Choices, scene: impl Fn(u64) + Send + Sync + 'static) -> Explored {
    let (seed, budget) =
        (choices.seed, Budget { schedules: 1, until: None, traced: false, options: 0 });
    run(vec![Box::new(Replay { choices, step: 0 })], budget, Random::seeded(0), Some(seed), scene)
}

fn run(
    ways: Vec<Box<dyn Scheduler + Send>>,
    budget: Budget,
    seeds: Random,
    fixed: Option<u64>,
    scene: impl Fn(u64) + Send + Sync + 'static,
) -> Explored {
    let log = Arc::new(Mutex::new(Log { options: budget.options, ..Log::default() }));
    let watch = Watch { ways, budget, seeds, log: log.clone() };
    let mut config = shuttle::Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS_MAX);
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    let seen = log.clone();
    // The scene is played on a new thread, so that everything that a failed execution leaves behind
    // ends with the thread.
    let played = std::thread::spawn(move || {
        shuttle::Runner::new(watch, config).run(move || {
            let mut log = lock(&seen);
            let seed = fixed.unwrap_or(log.current.seed);
            log.current.seed = seed;
            drop(log);
            scene(seed);
        })
    });
    let failure = played.join().err().map(|panic| {
        let texts = [
            panic.downcast_ref::<String>().map(String::as_str),
            panic.downcast_ref::<&str>().copied(),
        ];
        texts.into_iter().flatten().next().unwrap_or("a panic without words").to_string()
    });
    let mut log = lock(&log);
    if failure.is_some() {
        log.close();
    }
    let failure = failure.map(|text| (std::mem::take(&mut log.current), text));
    Explored { run: log.run, distinct: log.seen.len(), failure }
}

#[test]
fn shuttle_choices_are_parsed_from_their_text() {
    let choices = Choices { seed: 7, steps: vec![0, 0, 0, 1, 2, 2, 1, 25] };
    assert_eq!(choices.to_string(), "7:a3bc2bz");
    assert_eq!(Choices::parse("7:a3bc2bz"), Some(choices));
    for wrong in ["", "7", "x:ab", "7:a3B", "7:3", "7:aé"] {
        assert_eq!(Choices::parse(wrong), None, "{wrong:?}");
    }
}

/// Two threads increment a number, but not atomically. The exploration finds a schedule that loses
/// an increment, and a replay of that schedule loses it again.
#[test]
fn shuttle_finds_a_lost_increment_and_replays_it() {
    use crate::sync::{AtomicU64, Ordering, thread};
    let scene = |_: u64| {
        let count = AtomicU64::new(0);
        let increment = || count.store(count.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::scope(|scope| {
            scope.spawn(increment);
            scope.spawn(increment);
        });
        assert_eq!(count.load(Ordering::SeqCst), 2, "an increment is lost");
    };
    let explored =
        explore(Budget { schedules: 1_000, until: None, traced: false, options: 0 }, 1, scene);
    let (choices, text) = explored.failure.expect("one in a few schedules shows it");
    assert!(
        text.contains("an increment is lost") && explored.run < 100,
        "{text} after {}",
        explored.run
    );
    let again = replay(Choices::parse(&choices.to_string()).expect("printed a moment ago"), scene);
    assert!(again.failure.is_some_and(|(_, text)| text.contains("an increment is lost")));
    // A scene has few schedules, and there are eight ways to build its database. However often the
    // scene is played, the number of distinct schedules stays small.
    let small = |_: u64| {
        let other = thread::spawn(|| {});
        thread::yield_now();
        other.join().unwrap();
    };
    let explored =
        explore(Budget { schedules: 200, until: None, traced: false, options: 7 }, 1, small);
    assert!(explored.failure.is_none() && explored.run == 200, "{explored:?}");
    assert!((2..=16).contains(&explored.distinct), "{explored:?}");
}
