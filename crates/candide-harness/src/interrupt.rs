//! Ctrl-C: the first press ends the command early, with a report on the measurements so far. The
//! second press ends the command at once.

use std::io::{self, Write};
use std::process;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The exit status of a command that was ended early: 128 plus the number of the signal, as in
/// shells.
pub const STATUS: u8 = 130;

/// The state of Ctrl-C. The thread that waits for the signal writes it; timekeepers and loaders
/// read it.
struct Interrupt {
    pressed: Mutex<bool>,
    changed: Condvar,
}

/// The interrupt of the process; it is global since a signal goes to the whole process.
static INTERRUPT: Interrupt = Interrupt::new();

/// Installs the handler of Ctrl-C that the module describes. A command that has nothing to report
/// early does not call this function.
pub fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        let say = || {
            // The command ends early even if printing fails.
            let _ = writeln!(
                io::stderr(),
                "\ninterrupted: the measurement ends early and is reported; press Ctrl-C again to stop at once"
            );
        };
        if INTERRUPT.press(say) {
            process::exit(i32::from(STATUS));
        }
    })
}

/// Returns whether Ctrl-C has been pressed.
pub fn is_pressed() -> bool {
    *INTERRUPT.lock()
}

/// Sleeps for `duration`, or until Ctrl-C is pressed. Returns `false` if Ctrl-C was pressed.
pub(crate) fn sleep(duration: Duration) -> bool {
    INTERRUPT.sleep(duration)
}

impl Interrupt {
    const fn new() -> Self {
        Interrupt { pressed: Mutex::new(false), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.pressed.lock().expect("no thread panics while holding it")
    }

    /// Wakes the sleeping threads on the first call, and does nothing on later calls. Calls `say`
    /// before waking, since a woken thread may end the process. Returns whether the call was a
    /// later one.
    fn press(&self, say: impl FnOnce()) -> bool {
        let mut pressed = self.lock();
        if *pressed {
            return true;
        }
        say();
        *pressed = true;
        self.changed.notify_all();
        false
    }

    fn sleep(&self, duration: Duration) -> bool {
        let slept = self.changed.wait_timeout_while(self.lock(), duration, |pressed| !*pressed);
        !*slept.expect("no thread panics while holding it").0
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_sleeper_is_woken_and_no_thread_sleeps_afterwards() {
        let interrupt = Interrupt::new();
        assert!(interrupt.sleep(Duration::from_millis(1)), "the sleep ends by time alone");
        let begun = Instant::now();
        let long = Duration::from_secs(600);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| interrupt.sleep(long));
            assert!(!interrupt.press(|| ()), "the first time");
            assert!(!sleeper.join().expect("no panic"));
        });
        assert!(interrupt.press(|| panic!("the interrupt has been signalled")), "the second time");
        assert!(!interrupt.sleep(long));
        assert!(begun.elapsed() < long);
    }
}
