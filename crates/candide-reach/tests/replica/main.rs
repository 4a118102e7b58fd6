//! Tests of databases that follow another one, without a place between the two: the objects are
//! made of the other database's files. They are here because the protocol's tests are.

#![cfg(feature = "engine")]

mod foreign;
mod readers;
mod restarts;
mod snapshots;
mod source;
mod streams;
mod values;
