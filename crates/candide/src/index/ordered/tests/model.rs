//! Random operations of one thread, compared with a map.

use crate::index::ordered::tests::*;
use crate::sync::size::share;

/// Runs a long random mixture of links, unlinks, lookups and scans; the index grows and then
/// shrinks to nothing, twice.
fn live(key_words: usize, node_words: usize, domain: Domain, steps: usize, seed: u64) {
    let rows = Rows::new(key_words, node_words);
    let (mut own, mut random) = (Own::default(), Random::seeded(seed));
    let mut model = BTreeMap::<Vec<u64>, RecordAt>::new();
    let mut most = 0;
    for step in 0..steps {
        let growing = (step / (steps / 4)).is_multiple_of(2);
        let key = if growing || below(&mut random, 4) == 0 {
            domain.key(key_words, &mut random)
        } else {
            let pivot = domain.key(key_words, &mut random);
            model
                .range(pivot..)
                .next()
                .or(model.iter().next())
                .map_or(vec![0; key_words], |(key, _)| key.clone())
        };
        assert_eq!(rows.find(&key), model.get(&key).copied());
        let wants_link = below(&mut random, 8) < if growing { 7 } else { 1 };
        match model.get(&key).copied() {
            Some(record) if !wants_link => {
                rows.unlink(&mut own, record);
                model.remove(&key);
            }
            existing => {
                // In the other half of the cases the last place is used, although its leaf may have
                // changed much.
                if below(&mut random, 2) == 0 {
                    own.place = Place::default();
                }
                match (rows.try_link(&mut own, &key, |_| ()).unwrap(), existing) {
                    ((_, Linked::Existing(found)), Some(existing)) => assert_eq!(found, existing),
                    ((record, Linked::New { node, after, .. }), None) => {
                        assert_eq!(node.version(), after);
                        model.insert(key, record);
                    }
                    (linked, existing) => panic!("{linked:?} {existing:?}"),
                }
            }
        }
        most = most.max(model.len());
        if below(&mut random, 20) == 0 {
            let range = domain.range(key_words, &mut random);
            let direction = direction(&mut random);
            let mut expected: Vec<_> =
                model.keys().filter(|key| contains(&range, key)).cloned().collect();
            if direction == Direction::Reverse {
                expected.reverse();
            }
            assert_eq!(rows.scan(&range, direction).0, expected, "{range:?} {direction:?}");
        }
        if step.is_multiple_of(500) {
            rows.check();
        }
    }
    let mut linked = Vec::new();
    rows.index.for_each(&mut |record| linked.push(rows.key(record)));
    assert!(linked.iter().eq(model.keys()));
    let nodes = rows.check();
    println!(
        "{key_words} words, {domain:?}: at most {most} rows; {nodes} nodes for {} at the end",
        model.len()
    );
    for record in model.into_values() {
        rows.unlink(&mut own, record);
    }
    assert_eq!(rows.check(), 1, "only the first layer's root is left");
    let retired: BTreeSet<u64> =
        own.retired.iter().map(block_of).map(|block| block.address()).collect();
    assert_eq!(retired.len(), own.retired.len(), "every node is retired once");
}

fn block_of(retired: &Retire) -> crate::memory::Block {
    let Retire::Block(block) = retired else { panic!("an ordered index has only nodes") };
    *block
}

#[test]
fn the_index_agrees_with_a_map() {
    for key_words in 1..=4 {
        for (number, domain) in [Domain::Tiny, Domain::Small, Domain::Huge].into_iter().enumerate()
        {
            for node_words in [0, 2] {
                live(
                    key_words,
                    node_words,
                    domain,
                    share(12_000),
                    (key_words * 10 + number) as u64,
                );
            }
        }
    }
}

/// Several levels of inner nodes are filled in three orders and emptied in three orders.
#[test]
fn large_layers_grow_and_shrink() {
    const ROWS: u64 = 30_000;
    let scattered = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let orders: [Box<dyn Fn(u64) -> u64>; 3] =
        [Box::new(|row| row), Box::new(|row| !row), Box::new(scattered)];
    let rows = Rows::new(1, 0);
    let mut own = Own::default();
    let mut reserved = 0;
    for (round, order) in orders.iter().chain(&orders).enumerate() {
        let mut records: Vec<_> =
            (0..ROWS).map(|row| rows.link(&mut own, &[order(row)]).unwrap()).collect();
        let nodes = rows.check();
        println!("order {round}: {nodes} nodes, {:.1} rows in each", ROWS as f64 / nodes as f64);
        assert!((ROWS as usize / WIDTH..ROWS as usize / 5).contains(&nodes));
        match round % 3 {
            0 => records.reverse(),
            1 => records.sort_by_key(|record| scattered(record.key_word(0))),
            _ => {}
        }
        for (index, &record) in records.iter().enumerate() {
            rows.unlink(&mut own, record);
            if index.is_multiple_of(5_000) {
                rows.check();
            }
        }
        assert_eq!(rows.check(), 1);
        // The pin ends.
        for retired in own.retired.drain(..) {
            Cache::of(&mut own.caches, rows.index.nodes())
                .free(rows.index.nodes(), block_of(&retired));
        }
        let now = rows.index.nodes().reserved_bytes();
        assert!(round < 3 || now == reserved, "{now} bytes after {reserved}: nodes are lost");
        reserved = now;
    }
}

/// Keys as long as they may be, which agree up to the last word.
#[test]
fn the_longest_keys_make_the_deepest_trie() {
    let rows = Rows::new(32, 0);
    let mut own = Own::default();
    let key = |last: u64| {
        let mut key = vec![7; 32];
        key[31] = last;
        key
    };
    let records: Vec<_> = (0..40).map(|last| rows.link(&mut own, &key(last)).unwrap()).collect();
    assert!(rows.check() > 32);
    assert_eq!(rows.find(&key(13)), Some(records[13]));
    let all = KeyRange::all();
    assert_eq!(rows.scan(&all, Direction::Reverse).0, (0..40).rev().map(key).collect::<Vec<_>>());
    records.into_iter().for_each(|record| rows.unlink(&mut own, record));
    assert_eq!(rows.check(), 1);
}

/// When the memory limit refuses a node, the key is not linked, and everything else is as before.
#[test]
fn a_refused_node_changes_nothing() {
    let rows = Rows::with_limit(2, 0, 64 << 10);
    let mut own = Own::default();
    let mut random = Random::seeded(5);
    let mut linked = BTreeSet::new();
    let refused = loop {
        let key = vec![random.next() % 50, random.next()];
        own.place = Place::default();
        match rows.try_link(&mut own, &key, |_| ()) {
            Ok(_) => linked.insert(key),
            Err(OutOfMemory) => break key,
        };
    };
    assert!(linked.len() > 500, "{}", linked.len());
    rows.check();
    assert_eq!(rows.find(&refused), None);
    let all = KeyRange::all();
    assert!(rows.scan(&all, Direction::Forward).0.iter().eq(&linked));
}

/// A key goes into the leaf into which the key before it went.
#[test]
fn a_place_finds_the_next_leaf() {
    let rows = Rows::new(2, 0);
    let mut own = Own::default();
    let mut near = 0;
    for row in 0..1_000u64 {
        let key = [row / 100, row % 100];
        near += usize::from(own.place.0.is_some_and(|near| {
            near.is_home_of(&key) && near.spot.leaf.is_still(near.spot.version)
        }));
        assert!(matches!(rows.try_link(&mut own, &key, |_| ()), Ok((_, Linked::New { .. }))));
    }
    rows.check();
    assert!(near > 900, "{near}");
}

/// Lets several sessions link ascending keys in turn, each session next to its last key. In
/// between, the others link keys, split leaves and empty them; nevertheless, each session links its
/// key at the right place.
fn fill_together(key_words: usize, node_words: usize, seed: u64) {
    let rows = Rows::new(key_words, node_words);
    let mut random = Random::seeded(seed);
    let mut model = BTreeMap::<Vec<u64>, RecordAt>::new();
    let mut runs: [(Own, u64); 4] = std::array::from_fn(|_| (Own::default(), random.below(400)));
    for _ in 0..600 {
        let (own, next) = &mut runs[below(&mut random, 4)];
        *next = if below(&mut random, 40) == 0 {
            random.below(400)
        } else {
            *next + 1 + random.below(3)
        };
        let key: Vec<u64> = (1..key_words).map(|_| 7).chain([*next]).collect();
        match rows.try_link(own, &key, |_| ()).unwrap() {
            (record, Linked::New { .. }) => {
                assert!(model.insert(key.clone(), record).is_none(), "{key:?} has two records")
            }
            (_, Linked::Existing(existing)) => assert_eq!(model.get(&key), Some(&existing)),
        }
        assert_eq!(rows.find(&key), model.get(&key).copied(), "seed {seed}: {key:?}");
        if below(&mut random, 100) == 0 {
            let first = random.below(400);
            model.retain(|key, record| {
                let stays = !(first..first + 60).contains(&key[key_words - 1]);
                if !stays {
                    rows.unlink(own, *record);
                }
                stays
            });
        }
    }
    rows.check();
    let (keys, _) = rows.scan(&KeyRange::all(), Direction::Forward);
    assert!(keys.iter().eq(model.keys()), "seed {seed}");
}

#[test]
fn a_remembered_place_is_searched_anew_after_changes_by_others() {
    for seed in 0..60 {
        fill_together(1, 0, seed);
        fill_together(1, 2, seed);
        fill_together(3, 0, seed);
    }
}
