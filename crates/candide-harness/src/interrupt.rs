//! Ctrl-C: the first one ends what is going on early, and what has been measured by then is
//! reported; the second one ends the command at once.

use std::io::{self, Write};
use std::process;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::failure::Failure;

/// The exit status of a command that was ended early: 128 and the number of the signal, as shells
/// have it.
pub const STATUS: u8 = 130;

/// Whether somebody has had enough. Written by the thread that waits for the signal, read by those
/// that keep the time and by loaders.
struct Interrupt {
    pressed: Mutex<bool>,
    changed: Condvar,
}

/// A signal is the process's.
static INTERRUPT: Interrupt = Interrupt::new();

/// Has Ctrl-C mean what it says above, from now on. Whoever has nothing to report early leaves it
/// as it is.
pub fn listen() -> Result<(), Failure> {
    Ok(ctrlc::set_handler(|| {
        let say = || {
            // Where nobody can be told, it is done all the same.
            let _ = writeln!(
                io::stderr(),
                "\ninterrupted: what is going on ends early and is reported; once more to stop at once"
            );
        };
        if INTERRUPT.press(say) {
            process::exit(i32::from(STATUS));
        }
    })?)
}

/// Whether Ctrl-C has been pressed.
pub fn is_pressed() -> bool {
    *INTERRUPT.lock()
}

/// Lets time pass, until Ctrl-C is pressed. Gives whether it was not.
pub(crate) fn sleep(duration: Duration) -> bool {
    INTERRUPT.sleep(duration)
}

impl Interrupt {
    const fn new() -> Self {
        Interrupt { pressed: Mutex::new(false), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.pressed.lock().expect("nobody panics while holding it")
    }

    /// Wakes who sleeps, having `say` something first if it is the first time: whoever is woken may
    /// end the process. Gives whether it had been pressed before.
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
        !*slept.expect("nobody panics while holding it").0
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn who_sleeps_is_woken_and_nobody_sleeps_afterwards() {
        let interrupt = Interrupt::new();
        assert!(interrupt.sleep(Duration::from_millis(1)), "time has passed and nothing else");
        let begun = Instant::now();
        let long = Duration::from_secs(600);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| interrupt.sleep(long));
            assert!(!interrupt.press(|| ()), "the first time");
            assert!(!sleeper.join().expect("no panic"));
        });
        assert!(interrupt.press(|| panic!("it has been said")), "the second time");
        assert!(!interrupt.sleep(long));
        assert!(begun.elapsed() < long);
    }
}
