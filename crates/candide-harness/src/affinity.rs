//! Pinning threads to cores.

/// The cores that this process may use.
pub struct Cores {
    numbers: Vec<usize>,
}

impl Cores {
    /// Returns the number of cores.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(target_os = "linux")]
impl Cores {
    /// Returns the cores that the calling thread may use; if they are unknown, as many cores as the
    /// system reports.
    pub fn allowed() -> Cores {
        use rustix::thread::{CpuSet, sched_getaffinity};

        match sched_getaffinity(None) {
            Ok(set) => {
                Cores { numbers: (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect() }
            }
            Err(_) => Self::claimed(),
        }
    }

    /// Pins the calling thread, number `thread` of a run, to a core. Each thread has its own core
    /// if there are enough cores. If the system refuses, the thread stays unpinned: the measurement
    /// is then noisier, but not wrong.
    pub fn pin(&self, thread: usize) {
        let mut set = rustix::thread::CpuSet::new();
        set.set(self.numbers[thread % self.numbers.len()]);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// Returns as many cores as the system reports.
    pub fn allowed() -> Cores {
        Self::claimed()
    }

    /// Does nothing, since not every system lets a thread choose its core.
    pub fn pin(&self, _thread: usize) {}
}

impl Cores {
    fn claimed() -> Cores {
        Cores {
            numbers: (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        }
    }
}
