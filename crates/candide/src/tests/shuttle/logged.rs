//! Scenes of databases with a log. The prefixes of the logs are judged.

use super::super::rows::Item;
use super::stage::{Actor, Scene};
use crate::engine::Protocol;

/// The number of rounds that the logger makes beside other threads.
const ROUNDS: usize = 6;

/// Makes rounds, as the logger's part of a scene.
fn rounds<P: Protocol>(me: &mut Actor<'_, P>) {
    for _ in 0..ROUNDS {
        if me.round() {
            me.saw("block");
        }
        crate::sync::thread::yield_now();
    }
}

/// Makes the rounds after which nothing is left to be written.
fn settle<P: Protocol>(me: &mut Actor<'_, P>) {
    for _ in 0..3 {
        me.round();
    }
}

/// Random transactions run while the logger makes rounds.
pub(super) fn prefixes<P: Protocol>() -> Scene<P> {
    fn fill<P: Protocol>(me: &mut Actor<'_, P>) {
        me.mix().fill(&mut me.session);
        me.note();
        settle(me);
    }
    fn steps<P: Protocol>(me: &mut Actor<'_, P>) {
        let mix = me.mix();
        for _ in 0..3 {
            mix.step(&mut me.session, &mut me.random, 3);
            me.note();
            me.pass();
        }
    }
    Scene::new("prefixes")
        .logged()
        .before(fill)
        .part(steps)
        .part(steps)
        .part(rounds)
        .after(settle)
        .shows("block")
}

/// Each of two transactions reads the row that the other one writes, and a third one reads both,
/// while the logger makes rounds.
pub(super) fn cut_skew<P: Protocol>() -> Scene<P> {
    fn fill<P: Protocol>(me: &mut Actor<'_, P>) {
        me.fill(0..2, 0);
        me.note();
        settle(me);
    }
    fn copy<P: Protocol>(me: &mut Actor<'_, P>) {
        let (items, from) = (me.items(), me.number - 1);
        for _ in 0..2 {
            me.run(|tx| {
                let count = items.read(tx, &from, Item::COUNT)?;
                items.update(tx, &(1 - from), Item::COUNT.set(count + 1))
            });
            me.note();
        }
    }
    fn look<P: Protocol>(me: &mut Actor<'_, P>) {
        let items = me.items();
        for _ in 0..2 {
            me.run(|tx| {
                (0..2).try_for_each(|id| items.read(tx, &id, Item::COUNT).map(drop))?;
                Ok(())
            });
            me.note();
        }
    }
    Scene::new("cut-skew")
        .logged()
        .before(fill)
        .part(copy)
        .part(copy)
        .part(look)
        .part(rounds)
        .after(settle)
        .shows("block")
}
