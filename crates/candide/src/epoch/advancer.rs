//! The advancer: the thread that moves the epochs of a process.

#![forbid(unsafe_code)]

use super::alarm::{Alarm, Calls, WAIT_MAX};
use super::moments::Moments;
use super::{Epochs, PARKED};
use crate::error::{Abort, Error};
use crate::sync::{
    Duration, Instant, Ordering, Point, full_fence, is_inside_transaction, lock, pass, process,
    sleep, thread,
};
use std::sync::{Arc, Weak};

/// Time between two passes.
const PERIOD: Duration = Duration::from_millis(1);

/// The number of passes without any pin before the advancer parks. The number is so large that the
/// advancer of a busy program never parks.
const IDLE_PASSES: u64 = 64;

impl Epochs {
    /// Returns the epochs of this process, with a running advancer. The advancer is stopped and
    /// joined when the last user of the epochs is dropped.
    pub(crate) fn of_process() -> Arc<Epochs> {
        static CURRENT: process::Mutex<Weak<Epochs>> = process::Mutex::new(Weak::new());
        let mut current = process::lock(&CURRENT);
        if let Some(epochs) = current.upgrade() {
            return epochs;
        }
        let epochs = Epochs::advancing();
        *current = Arc::downgrade(&epochs);
        epochs
    }

    /// Makes epochs with an advancer of their own.
    pub(crate) fn advancing() -> Arc<Epochs> {
        let epochs = Epochs::starting(1, Some(Moments::new()));
        let (weak, alarm) = (Arc::downgrade(&epochs), epochs.alarm.clone());
        let advancer = process::Builder::new()
            .name("candide-epoch".into())
            .spawn(move || advance(&weak, &alarm))
            .expect("the operating system starts a thread");
        epochs.advancer.set(advancer).expect("only this call sets the advancer");
        epochs
    }

    /// Makes the advancer pass soon, even if the advancer is asleep.
    #[cold]
    pub(crate) fn unpark(&self) {
        self.alarm.call(|calls| calls.woken = true);
    }

    /// Checks that this thread is not inside a transaction, for which it would wait without
    /// success.
    ///
    /// # Errors
    /// [`Error::Transaction`] with [`Abort::Nested`].
    pub(crate) fn refuse_inside(&self) -> Result<(), Error> {
        match is_inside_transaction() {
            true => Err(Error::Transaction(Abort::Nested)),
            false => Ok(()),
        }
    }

    /// Waits until every transaction that is now running in this process has ended. Returns at once
    /// if none is running; otherwise sleeps between the advancer's passes, so that the call returns
    /// about two passes after the last of these transactions.
    ///
    /// # Errors
    /// [`Error::Busy`] if one of these transactions is still running after ten seconds.
    pub(crate) fn wait_for_others(&self) -> Result<(), Error> {
        let begun = Instant::now();
        let stamp = self.stamp();
        if self.has_no_pin() {
            return Ok(());
        }
        loop {
            self.await_pass();
            if self.is_free(stamp) {
                return Ok(());
            }
            let waited = begun.elapsed();
            if waited > WAIT_MAX {
                return Err(Error::Busy { waited });
            }
            pass(Point::Awaiting);
        }
    }

    /// Returns whether no session is pinned. The caller has passed a full fence: a session that
    /// pins later sees what the caller did before (E10).
    pub(super) fn has_no_pin(&self) -> bool {
        !lock(&self.slots).all.values().any(|slot| slot.is_pinned())
    }

    /// Sleeps until the advancer has made a pass, but no longer than [`WAIT_MAX`]. The advancer
    /// does not park meanwhile. If there is no advancer, this function makes a pass.
    pub(super) fn await_pass(&self) {
        if self.moments.is_none() {
            self.pass();
            return thread::yield_now();
        }
        let mut calls = self.alarm.lock();
        let passes = calls.passes;
        calls.waiting += 1;
        self.alarm.wake_worker();
        let until = Some(Instant::now() + WAIT_MAX);
        let has_passed = |calls: &mut Calls| (calls.passes != passes).then_some(());
        (calls, _) = self.alarm.await_work(calls, until, has_passed);
        calls.waiting -= 1;
    }

    /// Does the advancer's work of one period. Returns whether garbage is left.
    pub(crate) fn advance(&self) -> bool {
        self.pass();
        if let Some(moments) = &self.moments {
            moments.mark(self.now());
        }
        let mut calls = self.alarm.lock();
        calls.passes += 1;
        if calls.waiting > 0 {
            self.alarm.wake_waiters();
        }
        drop(calls);
        self.collect()
    }

    /// Lets the databases collect the garbage of their idle sessions. Returns whether garbage is
    /// left.
    fn collect(&self) -> bool {
        let idle_before = self.now().saturating_sub(8);
        let collectors: Vec<_> = {
            let mut collectors = lock(&self.collectors);
            collectors.retain(|collector| collector.strong_count() > 0);
            collectors.iter().filter_map(Weak::upgrade).collect()
        };
        let mut left = false;
        for collector in collectors {
            left |= collector.collect(idle_before);
        }
        left
    }

    fn all_idle(&self) -> bool {
        let since = self.now().saturating_sub(IDLE_PASSES);
        lock(&self.slots).all.values().all(|slot| slot.idle_since(since))
    }

    /// Announces that the advancer is about to sleep. Returns whether all sessions are still idle
    /// after the announcement.
    fn announce_parked(&self) -> bool {
        self.clock.parked.store(PARKED, Ordering::Relaxed);
        full_fence(); // E7
        self.all_idle()
    }
}

impl Drop for Epochs {
    fn drop(&mut self) {
        if let Some(advancer) = self.advancer.take() {
            self.alarm.call(|calls| calls.stopping = true);
            // The advancer's own thread may be dropping the last reference. Then that thread ends
            // without being joined.
            if advancer.thread().id() != process::current().id() {
                let _ = advancer.join();
            }
        }
    }
}

/// Runs the advancer. A sleeping advancer holds no strong reference to `epochs`, so dropping the
/// last database ends the advancer.
fn advance(epochs: &Weak<Epochs>, alarm: &Alarm) {
    loop {
        sleep(PERIOD);
        let Some(current) = epochs.upgrade() else { return };
        current.clock.parked.store(0, Ordering::Relaxed);
        let garbage_left = current.advance();
        let parking = !garbage_left && current.all_idle() && current.announce_parked();
        drop(current);
        if parking {
            // A call before this one, or a thread that waits already, wakes the advancer at once.
            alarm.await_call(None, |calls| {
                let is_over = calls.woken || calls.stopping || calls.waiting > 0;
                is_over.then(|| calls.woken = false)
            });
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Either the advancer sees the active session and stays awake, or that session wakes the
    /// advancer.
    #[test]
    fn loom_pin_against_parking() {
        loom::model(|| {
            let epochs = Epochs::manual(5);
            let slot = epochs.register();
            // The epoch is far beyond the last one in which a session was active.
            epochs.clock.epoch.store(6 + IDLE_PASSES, Ordering::Relaxed);
            let advancer = {
                let epochs = epochs.clone();
                thread::spawn(move || epochs.announce_parked())
            };
            epochs.pin(&slot);
            let parks = advancer.join().unwrap();
            assert!(!parks || epochs.alarm.lock().woken, "it sleeps while a session is active");
            epochs.unpin(&slot);
        });
    }
}
