//! Locks that an attempt takes ahead: those that earlier attempts of the transaction wanted.

#![forbid(unsafe_code)]

use super::state::{NO_UNITS, State};
use crate::engine::own_thread::{self, Held};
use crate::engine::{Context, Engine, Protocol};
use crate::error::Abort;

impl<P: Protocol> State<P> {
    /// Locks the units that earlier attempts of the transaction wanted, except units that no longer
    /// exist. Takes the locks of the retrospective lock list first. Stops at the first unit that
    /// cannot be locked.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_wanted(&mut self, engine: &Engine<P>) {
        for (at, writes) in self.worker.local.wanted.retrospective(engine) {
            let context = &mut Context::new(engine, &mut self.worker);
            if P::lock_ahead(context, &mut self.attempt, at, writes).is_err() {
                self.worker.local.conflict = None;
                break;
            }
        }
        for at in self.worker.local.wanted.cells(engine) {
            match P::hold(&mut Context::new(engine, &mut self.worker), &mut self.attempt, at) {
                Ok(true) => {
                    Held::ahead(at, self.worker.local.id).note();
                    self.held += 1;
                }
                Ok(false) => {}
                Err(_) => {
                    self.worker.local.conflict = None;
                    break;
                }
            }
        }
    }

    /// Checks whether a lock taken ahead, which the closure has not asked for, has refused a
    /// transaction of another session inside the closure. If so, dooms the attempt, and stops later
    /// attempts from locking ahead.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_locked_ahead(&mut self) {
        if own_thread::has_refused(self.held & !NO_UNITS) {
            self.worker.local.wanted.turn_off();
            self.doomed.get_or_insert(Abort::Locked);
        }
    }
}
