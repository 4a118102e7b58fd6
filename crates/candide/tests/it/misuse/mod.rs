//! Tests of wrong use: the error describes the right use, and the wrong use has no effect.

mod answers;
mod panics;
mod updaters;
