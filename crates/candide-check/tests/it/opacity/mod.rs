//! A model of the rule by which readers of `candide::protocols::occ` see no values of different
//! times, explored exhaustively: all interleavings of one reader, one to three writers, and an
//! epoch that may pass at any point.
//!
//! # The rule
//! e0 is the epoch at the reader's begin, before its first cell or node. All that it reads, alone
//! or in a batch (as scans do), misses or peeks at (a blind write tells whether the row is there)
//! is in its look-set.
//! * A cell with INSTALL of others is waited for, or is a conflict.
//! * A version of an epoch below e0, without INSTALL, is taken as it is.
//! * Any other version is shown only after a look: E1 is the epoch now; then (after a full fence)
//!   the whole look-set and the new cells must have the versions that they had, without INSTALL of
//!   others; a row that was peeked at may have another one of an epoch below E1 in which it is
//!   there as before. If something has changed, that is a conflict; else e0 becomes E1.
//!   (`occ` asks such a row before and behind all others instead, which makes it a read.)
//! * A key that is missing needs no epoch.
//! * Where looks have cost too much, the reader makes the epoch tick before E1, at most once, or
//!   gives up.
//! * What the reader stages is no lock while it executes. A read for update holds LOCK to the end;
//!   it needs a look like any other read, and others may read what is held.
//! * An attempt that wrote nothing validates nothing at its end. One that wrote commits like every
//!   writer: locks, (fence,) epoch, validation with the excuse for its own INSTALL, installs. A
//!   row that was peeked at must then have its version, or be locked by the attempt itself.
//!
//! Two steps that look right are not: [`Mutant::PeeksByExistence`] (a row that was peeked at may
//! have been deleted and put back by two commits, of which one changed what was looked at before
//! it, and the other one what is new) and [`Mutant::HeldUnlooked`] (what is held may have been read
//! in another version before).
//!
//! # What is asked
//! Whatever has been shown is the state after a first part of the commits, in the order of their
//! last locks: one that has all commits that had ended before the reader began, and none that
//! lacks a lock by now. (A mutant has to show a state after no set of commits that conflicts and
//! real time allow.) Each commit saw the state that those before it left. No run gets stuck, and
//! some run lets the reader do all that it does.
//!
//! # What is assumed
//! * Memory is sequentially consistent, and each step is one access: to the epoch, a cell, the
//!   node, or the reader's slot. Where the fences are is not asked here.
//! * A row's words are those of its cell's version.
//! * Waiting is no step; to give up instead of waiting is the beginning of a run that is explored.
//! * A writer reads without looks, and gives up at a lock of others.
//!
//! Each [`Mutant`] breaks the rule in one place, and some scene must show it. With `CANDIDE_FULL`,
//! more scenes are explored under the rule and its variants; with `CANDIDE_STRESS=n`, even more.

mod burial;
mod commit;
mod families;
mod judge;
mod list;
mod look;
mod memory;
mod quick;
mod reader;
mod rule;
mod run;
mod scene;
mod scenes;
mod slice;
mod state;
mod writer;

use judge::Fault;
use rule::{Mutant, Rule, Variant};
use run::explore;
use scene::Scene;

/// Explores all runs of a scene and panics if one has a fault.
fn assert_holds(scene: &Scene, rule: Rule) {
    if let Some((fault, run)) = explore(scene, rule, |_| true) {
        panic!("{fault:?} under {rule:?} in {scene:?}:{run:?}");
    }
}

#[test]
fn the_rule_of_views_implies_opacity_in_every_scene() {
    scenes::all().iter().for_each(|scene| assert_holds(scene, Rule::AsItIs));
}

#[test]
fn the_rule_of_views_implies_opacity_in_drawn_scenes_of_all_kinds() {
    let times = if slice::is_short() { 8_000 } else { 200 };
    let variants = Variant::ALL.iter().cycle();
    for (scene, variant) in slice::one_in(times, families::all()).zip(variants) {
        assert_holds(&scene, Rule::AsItIs);
        assert_holds(&scene, Rule::Varied(*variant));
    }
}

#[test]
fn sound_variants_of_the_rule_of_views_imply_opacity() {
    let scenes = scenes::all();
    let pairs =
        Variant::ALL.iter().flat_map(|variant| scenes.iter().map(move |scene| (scene, variant)));
    for (scene, variant) in slice::one_in(if slice::is_short() { 10 } else { 1 }, pairs) {
        assert_holds(scene, Rule::Varied(*variant));
    }
}

#[test]
fn each_unsound_variant_of_the_rule_of_views_fails_in_some_scene() {
    let scenes = scenes::all();
    // Another order of the commits is no harm by itself.
    let is_broken = |mutant: Mutant, scene: &Scene| {
        explore(scene, Rule::Broken(mutant), |fault| fault != Fault::NotInOrder).is_some()
    };
    for mutant in Mutant::ALL {
        let found = scenes.iter().find(|scene| is_broken(mutant, scene));
        println!("{mutant:?}: {}", found.map_or("not found", |scene| scene.name));
        assert!(found.is_some(), "no scene breaks {mutant:?}");
    }
}
