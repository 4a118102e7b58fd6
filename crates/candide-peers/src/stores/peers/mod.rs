//! The peers, one file each.
//!
//! To add a peer, write its file and add the peer to the list in [`all`]. If the peer takes long to
//! compile, make it depend on a feature, and list it in [`LEFT_OUT`] for builds without that
//! feature.

mod candide_logged;
mod candide_long;
mod candide_table;
#[cfg(feature = "fjall")]
pub(crate) mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
mod mutex;
mod mutex_logged;
#[cfg(feature = "redb")]
pub(crate) mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sharded;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
mod stm;
#[cfg(feature = "surrealmx")]
pub(crate) mod surrealmx;

pub(crate) use candide_logged::CandideLogged;
pub(crate) use candide_table::Candide;
pub(crate) use mutex::Mutex;

use super::driver::{Contender, of};

macro_rules! every_candide {
    ($($protocol:ty: $($_kind:ident $_name:ident = $_policy:expr),+;)+) => {
        vec![$(of::<Candide<$protocol>>()),+]
    };
}

/// Returns every peer that is built in, in the order of the tables.
pub(crate) fn all() -> Vec<Box<dyn Contender>> {
    let mut peers = candide::for_each_protocol!(every_candide);
    peers.extend(vec![
        of::<candide_long::CandideLong>(),
        #[cfg(feature = "surrealmx")]
        of::<surrealmx::SurrealMx>(),
        of::<stm::FastStm>(),
        of::<stm::Stm>(),
        #[cfg(feature = "fjall")]
        of::<fjall::Fjall>(),
        #[cfg(feature = "redb")]
        of::<redb::Redb>(),
        #[cfg(feature = "lmdb")]
        of::<lmdb::Lmdb>(),
        #[cfg(feature = "sqlite")]
        of::<sqlite::Sqlite>(),
        #[cfg(feature = "rocksdb")]
        of::<rocksdb::Pessimistic>(),
        #[cfg(feature = "rocksdb")]
        of::<rocksdb::Optimistic>(),
        of::<Mutex>(),
        of::<sharded::Sharded>(),
    ]);
    peers
}

/// The features that are off, each with the names of the peers that it would add.
pub(crate) const LEFT_OUT: &[(&str, &[&str])] = &[
    #[cfg(not(feature = "fjall"))]
    ("fjall", &["fjall"]),
    #[cfg(not(feature = "lmdb"))]
    ("lmdb", &["lmdb"]),
    #[cfg(not(feature = "redb"))]
    ("redb", &["redb"]),
    #[cfg(not(feature = "rocksdb"))]
    ("rocksdb", &["rocksdb-locks", "rocksdb-occ"]),
    #[cfg(not(feature = "sqlite"))]
    ("sqlite", &["sqlite"]),
    #[cfg(not(feature = "surrealmx"))]
    ("surrealmx", &["surrealmx"]),
];
