//! Threads of which one runs at a time, in an order that a seed decides.
//!
//! A thread gives up its turn at each call of the place. It holds no lock then, so the threads that
//! do not run wait for nothing else.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};

/// What ends a thread that is killed. Unwinding with it prints nothing.
pub struct Killed;

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    /// The threads that can run.
    threads: Vec<Member>,
    running: Option<usize>,
    made: usize,
    /// Processes whose threads end at their next call.
    killed: Vec<usize>,
    /// Processes that get no turn until others have none.
    stopped: Vec<usize>,
    turns: u64,
}

/// A thread that takes turns.
#[derive(Debug)]
struct Member {
    number: usize,
    process: usize,
    /// What is woken, once the thread has begun to wait.
    waiting: Option<Thread>,
}

/// The turns of all threads of one history. A clone is the same.
#[derive(Debug, Clone)]
pub struct Turns {
    state: Arc<Mutex<State>>,
}

impl Turns {
    pub fn new(seed: u64) -> Turns {
        let state = State {
            random: fastrand::Rng::with_seed(seed),
            threads: Vec::new(),
            running: None,
            made: 0,
            killed: Vec::new(),
            stopped: Vec::new(),
            turns: 0,
        };
        Turns { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Adds a thread of a process, which runs when it has the turn. Called before the thread is
    /// made, so that the order does not depend on how fast it begins.
    pub fn add(&self, process: usize) -> Turn {
        let mut state = self.state();
        let thread = state.made;
        state.made += 1;
        state.threads.push(Member { number: thread, process, waiting: None });
        Turn { turns: self.clone(), thread, process }
    }

    /// Gives the turn to a first thread.
    pub fn begin(&self) {
        self.pass(&mut self.state());
    }

    /// Ends all threads of a process, at their next calls.
    pub fn kill(&self, process: usize) {
        self.state().killed.push(process);
    }

    /// Stops a process, or lets it go on.
    pub fn stop(&self, process: usize, is_stopped: bool) {
        let mut state = self.state();
        state.stopped.retain(|other| *other != process);
        if is_stopped {
            state.stopped.push(process);
        }
    }

    pub fn is_stopped(&self, process: usize) -> bool {
        self.state().stopped.contains(&process)
    }

    /// Returns the number of turns so far.
    pub fn turns(&self) -> u64 {
        self.state().turns
    }

    /// Chooses the next thread.
    fn pass(&self, state: &mut State) {
        let State { random, threads, stopped, killed, .. } = state;
        let can_run = |member: &&Member| {
            !stopped.contains(&member.process) || killed.contains(&member.process)
        };
        let ready = threads.iter().filter(can_run).count();
        let next = match ready {
            0 => random.choice(threads.iter()),
            _ => threads.iter().filter(can_run).nth(random.usize(..ready)),
        };
        if let Some(thread) = next.and_then(|member| member.waiting.as_ref()) {
            thread.unpark();
        }
        state.running = next.map(|member| member.number);
        state.turns += 1;
    }
}

/// A thread's part in the turns.
#[derive(Debug)]
pub struct Turn {
    turns: Turns,
    thread: usize,
    process: usize,
}

impl Turn {
    /// Waits for the first turn.
    pub fn start(&self) {
        self.wait(self.turns.state());
    }

    /// Lets another thread run, and waits for the next turn. Ends this thread if its process was
    /// killed.
    pub fn give(&self) {
        let mut state = self.turns.state();
        self.turns.pass(&mut state);
        self.wait(state);
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        let is_own = |member: &&mut Member| member.number == self.thread;
        if let Some(member) = state.threads.iter_mut().find(is_own) {
            member.waiting.get_or_insert_with(thread::current);
        }
        while state.running != Some(self.thread) {
            drop(state);
            thread::park();
            state = self.turns.state();
        }
        let is_killed = state.killed.contains(&self.process);
        drop(state);
        if is_killed {
            resume_unwind(Box::new(Killed));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.threads.retain(|member| member.number != self.thread);
        self.turns.pass(&mut state);
    }
}
