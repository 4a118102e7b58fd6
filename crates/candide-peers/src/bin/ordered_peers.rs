//! Measures single operations of Candide's ordered tables beside other ordered maps, each directly
//! and in one process; see the file that it includes.
//!
//! ```text
//! cargo run --release --manifest-path crates/candide-peers/Cargo.toml --no-default-features \
//!     --bin ordered_peers -- [--rows 1000000,5000000] [--words 1,3] [--rounds 5]
//! ```
//!
//! A batch of operations of the other maps shares one guard, as one of the engine's shares a
//! transaction.
//!
//! The program first prints nanoseconds per load of a chain of dependent loads, by the size of the
//! memory. A time divided by that of a load is roughly a number of cache misses. With the
//! environment variable `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, memory of the allocator is in huge
//! pages where the system allows them on request. The engine's own memory always asks for them.

#[expect(dead_code, reason = "it has a main function of its own")]
#[path = "../../../candide-measure/src/bin/ordered.rs"]
mod ordered;

use std::error::Error;
use std::hint::black_box;

use masstree::{MassTree, RangeBound};
use ordered::{Candide, Case, Key, Map, Wide};
use scc::{Guard, TreeIndex};

/// A key that can be made into bytes.
trait Bytes: Key + candide_peers::Key {}

impl<K: Key + candide_peers::Key> Bytes for K {}

/// `masstree::MassTree`.
struct Masstree(MassTree<u64>);

impl<K: Bytes> Map<K> for Masstree {
    const NAME: &'static str = "masstree";

    fn new() -> Self {
        Masstree(MassTree::new())
    }

    fn insert(&mut self, keys: &[K]) {
        let guard = self.0.guard();
        for key in keys {
            self.0.insert_with_guard(key.to_bytes().as_ref(), 1, &guard);
        }
    }

    fn lookup(&mut self, keys: &[K]) -> u64 {
        let guard = self.0.guard();
        let values = keys.iter().map(|key| self.0.get_with_guard(key.to_bytes().as_ref(), &guard));
        values.map(|value| value.expect("the keys are present")).sum()
    }

    fn scan(&mut self, from: &K, count: usize) -> u64 {
        let (mut sum, mut left) = (0, count);
        let visit = |value: u64| {
            sum += value;
            left -= 1;
            left > 0
        };
        let from = from.to_bytes();
        let from = RangeBound::Included(from.as_ref());
        self.0.scan_values(from, RangeBound::Unbounded, visit, &self.0.guard());
        sum
    }
}

/// `scc::TreeIndex`.
struct Scc<K>(TreeIndex<K, u64>);

impl<K: Key> Map<K> for Scc<K> {
    const NAME: &'static str = "scc-treeindex";

    fn new() -> Self {
        Scc(TreeIndex::new())
    }

    fn insert(&mut self, keys: &[K]) {
        let _guard = Guard::new();
        for key in keys {
            assert!(self.0.insert_sync(*key, 1).is_ok(), "the keys are new");
        }
    }

    fn lookup(&mut self, keys: &[K]) -> u64 {
        let guard = Guard::new();
        let values = keys.iter().map(|key| self.0.peek(key, &guard));
        values.map(|value| value.expect("the keys are present")).sum()
    }

    fn scan(&mut self, from: &K, count: usize) -> u64 {
        let guard = Guard::new();
        self.0.range(*from.., &guard).take(count).map(|(_, value)| value).sum()
    }
}

/// Prints the time of a load that depends on the load before, by the size of the memory.
fn chase() {
    println!("dependent loads:");
    for (name, bytes) in [
        ("32 KiB", 32 << 10),
        ("1 MiB", 1 << 20),
        ("16 MiB", 16 << 20),
        ("256 MiB", 256 << 20),
        ("2 GiB", 2usize << 30),
    ] {
        // The first word of each cache line is the number of the next line.
        let mut lines: Vec<[u64; 8]> = (0..bytes as u64 / 64).map(|line| [line; 8]).collect();
        let mut random = fastrand::Rng::with_seed(1);
        // Swapping only with earlier lines makes a single cycle.
        (1..lines.len()).rev().for_each(|line| lines.swap(line, random.usize(..line)));
        let (mut at, steps) = (0, 4_000_000);
        let mut nanos: Vec<f64> = (0..5)
            .map(|_| {
                let begun = ordered::running();
                (0..steps).for_each(|_| at = lines[at][0] as usize);
                black_box(at);
                (ordered::running() - begun) as f64 / f64::from(steps)
            })
            .collect();
        ordered::print_nanos(name, &mut nanos);
    }
    let memory = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let tunables = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
    println!("  huge pages: {}, {tunables:?}", memory.unwrap_or_default().trim());
}

/// Measures every map.
fn measure_all<K: Bytes>(case: Case) {
    ordered::measure::<K, Candide<K>>(case);
    ordered::measure::<K, Masstree>(case);
    ordered::measure::<K, Scc<K>>(case);
}

fn main() -> Result<(), Box<dyn Error>> {
    chase();
    ordered::run_cases(measure_all::<u64>, measure_all::<Wide>)
}
