//! Keeping threads where they are.

/// The cores this process may use.
pub struct Cores {
    numbers: Vec<usize>,
}

impl Cores {
    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(target_os = "linux")]
impl Cores {
    /// Those the calling thread may use, or as many as the system claims to have.
    pub fn allowed() -> Cores {
        use rustix::thread::{CpuSet, sched_getaffinity};

        match sched_getaffinity(None) {
            Ok(set) => {
                Cores { numbers: (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect() }
            }
            Err(_) => Self::claimed(),
        }
    }

    /// Pins the calling thread, number `thread` of a run, to a core of its own while there are
    /// enough. A system that refuses is left alone: the measurement is then noisier, not wrong.
    pub(crate) fn pin(&self, thread: usize) {
        let mut set = rustix::thread::CpuSet::new();
        set.set(self.numbers[thread % self.numbers.len()]);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// As many as the system claims to have.
    pub fn allowed() -> Cores {
        Self::claimed()
    }

    /// Does nothing: not every system lets a thread choose its core.
    pub(crate) fn pin(&self, _thread: usize) {}
}

impl Cores {
    fn claimed() -> Cores {
        Cores {
            numbers: (0..std::thread::available_parallelism().map_or(1, usize::from)).collect(),
        }
    }
}
