//! Schedules: choosing them, counting the distinct ones, and replaying one.
//!
//! A schedule is the sequence of tasks that the scheduler let go on, one step after another. Two
//! kinds take turns: random ones, of which each has a patience of its own (the mean number of steps
//! that a task goes on for, from one to sixty-four), and those of probabilistic concurrency testing
//! [BK10], in which the task of highest priority goes on until one of a few random moments takes
//! its priority away.

use crate::sync::{Instant, Random};
use shuttle::scheduler::{PctScheduler, Schedule, Scheduler, Task, TaskId};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps after which a schedule counts as one that does not end: fifty times what scenes take.
const STEPS_MAX: usize = 200_000;
/// A checker runs on the stack of a task.
const STACK_BYTES: usize = 256 << 10;
/// Moments at which priorities change, in the schedules that have priorities, and one more.
const DEPTHS: [usize; 2] = [2, 4];

/// How many schedules to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) schedules: u64,
    /// No more after this.
    pub(super) until: Option<Instant>,
    /// Whether the number of each is printed before it is run, so that it is known if the process
    /// does not survive it.
    pub(super) traced: bool,
    /// The bits of a seed by which schedules of the same steps differ.
    pub(super) options: u64,
}

/// What came of running schedules.
#[derive(Debug)]
pub(super) struct Explored {
    pub(super) run: u64,
    pub(super) distinct: usize,
    /// The last schedule, if it failed, and how.
    pub(super) failure: Option<(Choices, String)>,
}

/// All that an execution depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choices {
    /// What the scene itself chooses by.
    pub(super) seed: u64,
    /// The tasks, step by step.
    pub(super) steps: Vec<u8>,
}

impl Choices {
    /// From what `Display` prints: `seed:steps`, where steps are letters, one for each task, with
    /// how often in a row.
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

/// What is noted of the executions. Not part of what is explored, so its lock is the standard
/// library's.
#[derive(Debug, Default)]
struct Log {
    run: u64,
    current: Choices,
    seen: HashSet<u64>,
    options: u64,
}

impl Log {
    /// Enters the execution that has ended.
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

/// Lets schedulers take turns, and writes down what they choose.
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

/// Chooses at random, with a patience drawn for each schedule.
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
        // A task that yields waits for another.
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

/// Chooses once more what was chosen before, as long as it can be.
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
        // All in turn, so that it ends.
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

/// Plays a scene, which is given a seed for its own choices, under schedules that `seed` leads to,
/// until one fails.
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

/// Plays a scene once as it was played before.
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
    // A thread of its own: what a failed execution leaves behind ends with it.
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
fn shuttle_choices_are_what_their_text_says() {
    let choices = Choices { seed: 7, steps: vec![0, 0, 0, 1, 2, 2, 1, 25] };
    assert_eq!(choices.to_string(), "7:a3bc2bz");
    assert_eq!(Choices::parse("7:a3bc2bz"), Some(choices));
    for wrong in ["", "7", "x:ab", "7:a3B", "7:3", "7:aé"] {
        assert_eq!(Choices::parse(wrong), None, "{wrong:?}");
    }
}

/// Two increments that are not atomic: a lost one is found, and found again by its schedule alone.
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
    // A scene of few schedules is seen in few, with eight ways to build what it plays with, however
    // often it is played.
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
