//! Pinning threads to cores.

/// The cores that this process may use.
pub(crate) struct Cores {
    numbers: Vec<usize>,
}

#[cfg(target_os = "linux")]
impl Cores {
    /// Returns the cores that the calling thread may use. If the system does not tell, returns as
    /// many cores as the system claims to have.
    pub(crate) fn allowed() -> Cores {
        use rustix::thread::{CpuSet, sched_getaffinity};

        match sched_getaffinity(None) {
            Ok(set) => {
                Cores { numbers: (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect() }
            }
            Err(_) => Self::claimed(),
        }
    }

    /// Pins the calling thread, which has number `thread` in its turn. As long as there are enough
    /// cores, each thread gets its own. If the system refuses, the thread is not pinned: the
    /// measurement is then noisier, but not wrong.
    pub(crate) fn pin(&self, thread: usize) {
        let mut set = rustix::thread::CpuSet::new();
        set.set(self.numbers[thread % self.numbers.len()]);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// Returns as many cores as the system claims to have.
    pub(crate) fn allowed() -> Cores {
        Self::claimed()
    }

    /// Does nothing: not every system lets a thread choose its core.
    pub(crate) fn pin(&self, _thread: usize) {}
}

impl Cores {
    pub(crate) fn count(&self) -> usize {
        self.numbers.len()
    }

    fn claimed() -> Cores {
        Cores {
            numbers: (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        }
    }
}
