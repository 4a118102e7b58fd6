//! The guarantee of the versions: no key enters an observed range without changing an observation.

use crate::index::ordered::tests::*;

fn holds(observed: &[(NodeAt, u64)]) -> bool {
    observed.iter().all(|(node, version)| node.version() == *version)
}

/// Replaces observations by those after own changes of the nodes.
fn apply(observed: &mut Observed, changes: &[NodeChange], linked: Linked) {
    let step =
        |observed: &mut Observed, node: NodeAt, before: u64, successors: &[(NodeAt, u64)]| {
            let count = observed.len();
            observed
                .retain(|(seen, version)| seen.address() != node.address() || *version != before);
            if observed.len() < count {
                observed.extend(successors);
            }
        };
    changes.iter().for_each(|change| {
        let successors = [&change.successors[..], &change.further].concat();
        step(observed, change.node, change.before, &successors);
    });
    if let Linked::New { node, before, after } = linked {
        step(observed, node, before, &[(node, after)]);
    }
}

/// Returns a key in the range that has no record.
fn absent_key(
    rows: &Rows,
    range: &KeyRange,
    domain: Domain,
    random: &mut Random,
) -> Option<Vec<u64>> {
    let near = |random: &mut Random| {
        let mut key = domain.key(rows.key_words, random);
        // Near the edges, where mistakes would be.
        for edge in [&range.lower, &range.upper] {
            if below(random, 3) == 0 {
                let common = below(random, edge.len + 1);
                key[..common].copy_from_slice(&edge.words[..common]);
            }
        }
        if below(random, 2) == 0 {
            let word = below(random, rows.key_words);
            key[word] = key[word].wrapping_add_signed(below(random, 3) as i64 - 1);
        }
        key
    };
    (0..40).map(|_| near(random)).find(|key| contains(range, key) && rows.find(key).is_none())
}

fn observations_tell(key_words: usize, domain: Domain, rounds: usize, seed: u64) {
    let rows = Rows::new(key_words, 0);
    let (mut own, mut random) = (Own::default(), Random::seeded(seed));
    let mut linked = Vec::new();
    let (mut foreign, mut restructured) = (0, 0);
    for _ in 0..rounds {
        // The number of rows first grows, then falls.
        let target = [0, 3, 40, 400, 2_000][below(&mut random, 5)];
        for _ in 0..300 {
            if linked.len() < target {
                linked.extend(rows.link(&mut own, &domain.key(key_words, &mut random)));
            } else if !linked.is_empty() {
                let index = below(&mut random, linked.len());
                rows.unlink(&mut own, linked.swap_remove(index));
            }
        }
        let range = domain.range(key_words, &mut random);
        let (_, mut observed) = rows.scan(&range, direction(&mut random));
        // Own links, wherever they are, leave the exchanged observations true.
        for _ in 0..below(&mut random, 60) {
            let key = match below(&mut random, 2) {
                0 => Some(domain.key(key_words, &mut random)),
                _ => absent_key(&rows, &range, domain, &mut random),
            };
            let Some(key) = key else { continue };
            if below(&mut random, 2) == 0 {
                own.place = Place::default();
            }
            let (record, result) = rows.try_link(&mut own, &key, |_| ()).unwrap();
            restructured += own.changes.len();
            apply(&mut observed, &own.changes, result);
            assert!(holds(&observed), "an own link fails what has been observed");
            if let Linked::New { .. } = result {
                linked.push(record);
            }
        }
        let (expected, _) = rows.scan(&range, Direction::Forward);
        if let Some(key) = absent_key(&rows, &range, domain, &mut random) {
            assert!(!observed.is_empty());
            let record = rows.link(&mut own, &key).unwrap();
            assert!(
                !holds(&observed),
                "{key:?} came into {range:?} unnoticed; there were {expected:?}"
            );
            linked.push(record);
            foreign += 1;
        }
    }
    println!(
        "{key_words} words, {domain:?}: {foreign} foreign links noticed, {restructured} own restructurings"
    );
    // Where there are five keys in all, most ranges are full.
    assert!(foreign > if key_words == 1 { 0 } else { rounds / 10 });
}

#[test]
fn validation_fails_by_links_of_others_and_not_by_own_ones() {
    for key_words in 1..=4 {
        observations_tell(key_words, Domain::Tiny, 300, key_words as u64);
        observations_tell(key_words, Domain::Small, 300, 10 + key_words as u64);
        observations_tell(key_words, Domain::Huge, 300, 20 + key_words as u64);
    }
}

/// A missed key is linked by another session, which is noticed, or by the session itself, which is
/// not.
#[test]
fn validation_of_a_missed_key_fails_by_a_link_of_another_transaction() {
    for key_words in 1..=3 {
        let rows = Rows::new(key_words, 0);
        let (mut own, mut random) = (Own::default(), Random::seeded(key_words as u64));
        let mut linked = Vec::new();
        for _ in 0..20_000 {
            let key = Domain::Small.key(key_words, &mut random);
            if let Found::Nothing { node, version } = rows.index.find(&key) {
                // Other keys are linked and unlinked.
                for _ in 0..below(&mut random, 4) {
                    let other = Domain::Small.key(key_words, &mut random);
                    if other != key {
                        linked.extend(rows.link(&mut own, &other));
                    }
                }
                for _ in 0..below(&mut random, 6).min(linked.len()) {
                    let index = below(&mut random, linked.len());
                    rows.unlink(&mut own, linked.swap_remove(index));
                }
                linked.extend(rows.link(&mut own, &key));
                assert_ne!(node.version(), version, "{key:?}");
            }
        }
    }
}

/// A scan of a prefix has nothing to do with inserts under other prefixes.
#[test]
fn observations_of_different_prefixes_are_independent() {
    let rows = Rows::new(3, 0);
    let mut own = Own::default();
    let prefixes = (0..40u64).map(|prefix| [prefix / 7, prefix % 7]);
    for [warehouse, district] in prefixes.clone() {
        (0..2).for_each(|row| assert!(rows.link(&mut own, &[warehouse, district, row]).is_some()));
    }
    let own_prefix = [2, 3];
    let edge = Edge::new(&own_prefix, Bound::Included);
    let (keys, observed) = rows.scan(&KeyRange { lower: edge, upper: edge }, Direction::Reverse);
    assert_eq!(keys, [[2, 3, 1], [2, 3, 0]]);
    for prefix in prefixes.filter(|prefix| *prefix != own_prefix) {
        (10..200)
            .for_each(|row| assert!(rows.link(&mut own, &[prefix[0], prefix[1], row]).is_some()));
    }
    assert!(holds(&observed));
    assert!(rows.link(&mut own, &[2, 3, 5]).is_some());
    assert!(!holds(&observed));
}

/// A range whose ends have crossed is empty, and no key can enter it.
#[test]
fn an_empty_range_observes_nothing() {
    let rows = Rows::new(2, 0);
    let mut own = Own::default();
    (0..100).for_each(|row| assert!(rows.link(&mut own, &[row / 10, row % 10]).is_some()));
    let edge = |words: &[u64], bound| Edge::new(words, bound);
    for (lower, upper) in [
        (edge(&[5], Bound::Included), edge(&[4], Bound::Included)),
        (edge(&[5], Bound::Excluded), edge(&[5], Bound::Included)),
        (edge(&[5, 5], Bound::Included), edge(&[5, 5], Bound::Excluded)),
        (edge(&[5], Bound::Excluded), edge(&[5, 9], Bound::Included)),
        (edge(&[u64::MAX], Bound::Excluded), Edge::unbounded()),
        (Edge::unbounded(), edge(&[0], Bound::Excluded)),
        (edge(&[], Bound::Excluded), Edge::unbounded()),
        (edge(&[77, 5], Bound::Excluded), edge(&[77, 5], Bound::Included)),
    ] {
        let (keys, observed) = rows.scan(&KeyRange { lower, upper }, Direction::Forward);
        assert!(keys.is_empty() && observed.is_empty(), "{lower:?} {upper:?}");
    }
}

/// A cursor continues while the tree changes. The cursor returns, in order, all keys that are
/// linked all the time; and if its observations still hold at the end, it has missed no key.
#[test]
fn a_cursor_survives_changes_between_its_steps() {
    let (mut valid, mut doomed) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::seeded(seed);
        let key_words = 1 + below(&mut random, 3);
        let domain = [Domain::Tiny, Domain::Small, Domain::Huge][below(&mut random, 3)];
        let rows = Rows::new(key_words, 0);
        let mut own = Own::default();
        let mut model = BTreeMap::new();
        for _ in 0..below(&mut random, 600) {
            let key = domain.key(key_words, &mut random);
            if let Some(record) = rows.link(&mut own, &key) {
                model.insert(key, record);
            }
        }
        let range = domain.range(key_words, &mut random);
        let direction = direction(&mut random);
        let mut steady: BTreeSet<_> =
            model.keys().filter(|key| contains(&range, key)).cloned().collect();
        let mut observed = Vec::new();
        let mut seen = Vec::new();
        let mut cursor = rows.index.cursor(range.of_whole_keys(rows.key_words), direction);
        let pace = 1 + below(&mut random, 10);
        let is_doomed = loop {
            match rows
                .index
                .advance(&mut cursor, &mut |node, version| observed.push((node, version)))
            {
                Advance::Next(record) => seen.push(rows.key(record)),
                Advance::End => break false,
                Advance::Doomed => break true,
            }
            if seen.len() % pace != 0 {
                continue;
            }
            // Many are removed at once, so that leaves and layers end under the cursor.
            let victims: Vec<_> = match below(&mut random, 3) {
                0 => Vec::new(),
                1 => model
                    .keys()
                    .skip(below(&mut random, model.len() + 1))
                    .take(40)
                    .cloned()
                    .collect(),
                _ => model.keys().take(1).cloned().collect(),
            };
            for key in victims {
                rows.unlink(&mut own, model.remove(&key).unwrap());
                steady.remove(&key);
            }
            for _ in 0..below(&mut random, 3) {
                let key = domain.key(key_words, &mut random);
                if let Some(record) = rows.link(&mut own, &key) {
                    model.insert(key, record);
                }
            }
        };
        assert!(seen.iter().all(|key| contains(&range, key)));
        let ascends = |pair: &[Vec<u64>]| {
            if direction == Direction::Forward { pair[0] < pair[1] } else { pair[0] > pair[1] }
        };
        assert!(seen.windows(2).all(ascends), "{seen:?}");
        if is_doomed {
            assert!(!holds(&observed), "a doomed scan validates");
            doomed += 1;
            continue;
        }
        assert!(
            steady.iter().all(|key| seen.contains(key)),
            "seed {seed}: a key that was never touched is missing"
        );
        if holds(&observed) {
            valid += 1;
            assert!(
                model.keys().filter(|key| contains(&range, key)).all(|key| seen.contains(key)),
                "seed {seed}"
            );
        }
    }
    println!("{valid} valid, {doomed} doomed");
    assert!(valid > 20);
}

/// Timestamps that absent readers have left in a leaf reach every record linked later where they
/// looked (OI8).
#[test]
fn timestamps_of_key_slices_move_with_them_in_splits() {
    for (key_words, domain) in [
        (1, Domain::Small),
        (1, Domain::Huge),
        (2, Domain::Tiny),
        (2, Domain::Small),
        (3, Domain::Tiny),
    ] {
        let rows = Rows::new(key_words, 2);
        let (mut own, mut random) = (Own::default(), Random::seeded(3));
        let mut readers = BTreeMap::<Vec<u64>, u64>::new();
        let mut linked = Vec::new();
        for step in 1..30_000 {
            let key = domain.key(key_words, &mut random);
            if let Found::Nothing { node, .. } = rows.index.find(&key) {
                if below(&mut random, 3) == 0 {
                    node.node_word(1).fetch_max(step, Ordering::Relaxed);
                    readers.insert(key, step);
                    continue;
                }
                own.place = Place::default();
                let mut births = 0;
                let inherit_from_node = |node: NodeAt| {
                    births += 1;
                    let inherited = node.node_word(1).load(Ordering::Relaxed);
                    assert!(readers.get(&key).is_none_or(|&step| step <= inherited), "{key:?}");
                };
                let (record, _) = rows.try_link(&mut own, &key, inherit_from_node).unwrap();
                assert_eq!(births, 1);
                linked.push((key, record));
            }
            for _ in 0..(2 * (step / 3_000 % 2)).min(linked.len() as u64) {
                let index = below(&mut random, linked.len());
                let (key, record) = linked.swap_remove(index);
                // The deleted row's own timestamp goes the same way.
                rows.index.unlink(record, &key, &mut own.retired, |node| {
                    node.node_word(1).fetch_max(step, Ordering::Relaxed);
                });
                readers.insert(key, step);
            }
        }
        rows.check();
        assert!(!own.retired.is_empty());
    }
}
