//! The processor's own counters, if the system grants access to them.

use serde::Serialize;

/// Events per operation, in user mode.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Events {
    /// The count of the system's generic event `cache-misses`.
    pub(crate) misses: f64,
    /// The number of retired instructions.
    pub(crate) instructions: f64,
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use perf_event::events::Hardware;
    use perf_event::{Builder, Counter, Group};

    use super::Events;

    /// The counters of the calling thread. Holds `None` if the system refuses them.
    pub(crate) struct Counters(Option<Open>);

    struct Open {
        group: Group,
        misses: Counter,
        instructions: Counter,
    }

    fn open() -> io::Result<Open> {
        let mut group = Group::new()?;
        let misses = group.add(&Builder::new(Hardware::CACHE_MISSES))?;
        let instructions = group.add(&Builder::new(Hardware::INSTRUCTIONS))?;
        Ok(Open { group, misses, instructions })
    }

    impl Counters {
        pub(crate) fn new() -> Counters {
            Counters(open().ok())
        }

        /// Returns the reason why there are no counters; `None` if there are counters.
        pub(crate) fn refusal() -> Option<String> {
            open().err().map(|error| error.to_string())
        }

        pub(crate) fn start(&mut self) {
            if self.0.as_mut().is_some_and(|open| open.group.enable().is_err()) {
                self.0 = None;
            }
        }

        /// Stops counting. Returns the number of events since the start, divided by `operations`.
        pub(crate) fn stop(&mut self, operations: f64) -> Option<Events> {
            let open = self.0.as_mut()?;
            open.group.disable().ok()?;
            let counts = open.group.read().ok()?;
            Some(Events {
                misses: counts[&open.misses] as f64 / operations,
                instructions: counts[&open.instructions] as f64 / operations,
            })
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::Events;

    /// A substitute on systems that have no such counters. It counts nothing.
    pub(crate) struct Counters;

    impl Counters {
        pub(crate) fn new() -> Counters {
            Counters
        }

        pub(crate) fn refusal() -> Option<String> {
            Some("counters are read on Linux only".to_string())
        }

        pub(crate) fn start(&mut self) {}

        pub(crate) fn stop(&mut self, _operations: f64) -> Option<Events> {
            None
        }
    }
}

pub(crate) use system::Counters;
