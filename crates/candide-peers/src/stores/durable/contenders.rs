//! The list of stores with durable commits.

use candide::DefaultProtocol;

use super::driver::{Contender, of};
#[cfg(feature = "fjall")]
use crate::stores::peers::fjall;
#[cfg(feature = "redb")]
use crate::stores::peers::redb;
#[cfg(feature = "sqlite")]
use crate::stores::peers::sqlite;
#[cfg(feature = "surrealmx")]
use crate::stores::peers::surrealmx;
use crate::stores::peers::{Candide, CandideLogged, Mutex};

/// Returns every store that is built in and has durable commits, in the order of the tables.
pub(crate) fn all() -> Vec<Box<dyn Contender>> {
    vec![
        of::<Candide<DefaultProtocol>>(),
        of::<CandideLogged<DefaultProtocol>>(),
        #[cfg(feature = "surrealmx")]
        of::<surrealmx::SurrealMx>(),
        #[cfg(feature = "fjall")]
        of::<fjall::Fjall>(),
        #[cfg(feature = "redb")]
        of::<redb::Redb>(),
        #[cfg(feature = "sqlite")]
        of::<sqlite::Sqlite>(),
        of::<Mutex>(),
    ]
}
