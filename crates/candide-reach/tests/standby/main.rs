//! Tests of standbys: databases that follow the one whose log is in a place.

#![cfg(feature = "engine")]

mod failures;
mod following;
mod primary;
mod promotion;
mod restarting;
mod restoring;
mod values;
mod whole;
