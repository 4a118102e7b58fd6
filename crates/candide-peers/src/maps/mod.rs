//! The maps, one file each.
//!
//! To add a map, write its file and add the map to the list in [`Maps::all`]. If the map takes keys
//! of any type, add it to the list in `of_any_key` instead.

mod btreemap;
mod candide_table;
mod congee;
mod dashmap;
mod masstree;
mod papaya;
mod scc_hash;
mod scc_tree;
mod skipmap;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

use candide_table::{Alone, Batched, Hash, Single, Sorted, Together};

use crate::cli::Hasher;
use crate::contender::{Contender, held};
use crate::{Key, Wide};

/// A hasher for hash maps.
pub(crate) trait Hashing: BuildHasher + Default + Clone + Send + Sync + 'static {}

impl<S: BuildHasher + Default + Clone + Send + Sync + 'static> Hashing for S {}

/// A key type with the list of its maps.
pub(crate) trait Maps: Key {
    /// Returns all maps for keys of this type, empty.
    fn all(hasher: Hasher) -> Vec<Box<dyn Contender<Self>>>;
}

impl Maps for u64 {
    fn all(hasher: Hasher) -> Vec<Box<dyn Contender<u64>>> {
        let mut maps = of_any_key(hasher);
        maps.push(held::<congee::Congee, _>());
        maps
    }
}

impl Maps for Wide {
    fn all(hasher: Hasher) -> Vec<Box<dyn Contender<Wide>>> {
        of_any_key(hasher)
    }
}

fn of_any_key<K: Key>(hasher: Hasher) -> Vec<Box<dyn Contender<K>>> {
    let mut maps = vec![
        held::<Hash<K, Single>, K>(),
        held::<Hash<K, Alone>, K>(),
        held::<Hash<K, Batched>, K>(),
        held::<Hash<K, Together>, K>(),
        held::<Sorted<K, Single>, K>(),
        held::<Sorted<K, Alone>, K>(),
        held::<Sorted<K, Batched>, K>(),
        held::<Sorted<K, Together>, K>(),
        held::<scc_tree::TreeIndex<K>, K>(),
        held::<masstree::Masstree, K>(),
        held::<skipmap::SkipMap<K>, K>(),
        held::<btreemap::BTreeMap<K>, K>(),
    ];
    maps.extend(match hasher {
        Hasher::Fold => hashed::<K, foldhash::fast::RandomState>(),
        Hasher::Sip => hashed::<K, RandomState>(),
    });
    maps
}

fn hashed<K: Key, S: Hashing>() -> Vec<Box<dyn Contender<K>>> {
    vec![
        held::<dashmap::DashMap<K, S>, K>(),
        held::<papaya::Papaya<K, S>, K>(),
        held::<scc_hash::HashMap<K, S>, K>(),
        held::<scc_hash::HashIndex<K, S>, K>(),
    ]
}
