//! Scenes of transactions that sleep until something changes. A lost wake-up is a deadlock.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::Protocol;

/// Two threads wait for each other, for the value of a row, for a row that is missing and for a row
/// that is there. A third one changes and collects rows beside theirs.
pub(super) fn waits<P: Protocol>() -> Scene<P> {
    fn ask<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        me.run(|tx| items.update(tx, 0, Item::COUNT.set(1)));
        me.run(|tx| tx.check(items.contains(tx, 7)?));
        me.run(|tx| items.delete(tx, 7));
        me.pass();
    }
    fn answer<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        me.run(|tx| tx.check(items.read(tx, 0, Item::COUNT)? == 1));
        me.run(|tx| items.insert(tx, Item::new(7, 0)));
        me.run(|tx| {
            tx.or_else(
                |tx| tx.check(items.read(tx, 1, Item::COUNT)? == 1),
                |tx| tx.check(!items.contains(tx, 7)?),
            )
        });
    }
    fn disturb<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        me.run(|tx| items.update(tx, 0, Item::COUNT.add(0)));
        me.run(|tx| items.read_for_update(tx, 0, Item::COUNT));
        me.run(|tx| items.put(tx, Item::new(8, 0)));
        me.run(|tx| items.delete(tx, 8));
        me.advance();
        me.advance();
    }
    Scene::peaceful("waits").before(|me| me.fill(0..2, 0)).part(ask).part(answer).part(disturb)
}
