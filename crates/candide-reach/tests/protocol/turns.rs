//! Threads of which one runs at a time, in an order that a seed decides.
//!
//! A thread gives up its turn at each call of the place. It holds no lock then, so the threads that
//! do not run wait for nothing else.

use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// What ends a thread that is killed. Unwinding with it prints nothing.
pub struct Killed;

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    /// The threads that can run, and the process of each.
    threads: Vec<(usize, usize)>,
    running: Option<usize>,
    made: usize,
    /// Processes whose threads end at their next call.
    killed: Vec<usize>,
    /// Processes that get no turn until others have none.
    stopped: Vec<usize>,
    turns: u64,
}

/// The turns of all threads of one history. A clone is the same.
#[derive(Debug, Clone)]
pub struct Turns {
    state: Arc<(Mutex<State>, Condvar)>,
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
        Turns { state: Arc::new((Mutex::new(state), Condvar::new())) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().unwrap()
    }

    /// Adds a thread of a process, which runs when it has the turn. Called before the thread is
    /// made, so that the order does not depend on how fast it begins.
    pub fn add(&self, process: usize) -> Turn {
        let mut state = self.state();
        let thread = state.made;
        state.made += 1;
        state.threads.push((thread, process));
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
        let can_run =
            |(_, process): &&(usize, usize)| !stopped.contains(process) || killed.contains(process);
        let ready: Vec<usize> = threads.iter().filter(can_run).map(|(thread, _)| *thread).collect();
        let any: Vec<usize> = threads.iter().map(|(thread, _)| *thread).collect();
        state.running = random.choice(if ready.is_empty() { any } else { ready });
        state.turns += 1;
        self.state.1.notify_all();
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

    fn wait(&self, mut state: MutexGuard<'_, State>) {
        while state.running != Some(self.thread) {
            state = self.turns.state.1.wait(state).unwrap();
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
        state.threads.retain(|(thread, _)| *thread != self.thread);
        self.turns.pass(&mut state);
    }
}
