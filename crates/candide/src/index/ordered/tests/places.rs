//! Places that lookups have found, in a tree that changes during the lookups and after them.

use super::*;

/// Links and unlinks random keys.
fn change(
    rows: &Rows,
    model: &mut BTreeMap<Vec<u64>, RecordAt>,
    domain: Domain,
    random: &mut Random,
) {
    for _ in 0..below(random, 40) {
        let (key, own) = (domain.key(rows.key_words, random), &mut Own::default());
        match model.remove(&key) {
            Some(record) if below(random, 2) == 0 => rows.unlink(own, record),
            Some(record) => drop(model.insert(key, record)),
            None => drop(model.insert(key.clone(), rows.link(own, &key).expect("it is absent"))),
        }
    }
}

#[test]
fn a_key_is_linked_in_its_place_whatever_has_happened_to_the_place() {
    for seed in 0..100 {
        let random = &mut Random::seeded(seed);
        let rows = Rows::new(1 + below(random, 3), 0);
        let domain = [Domain::Tiny, Domain::Small, Domain::Huge][below(random, 3)];
        let mut model = BTreeMap::new();
        for _ in 0..below(random, 20) {
            change(&rows, &mut model, domain, random);
        }
        for _ in 0..30 {
            let key = domain.key(rows.key_words, random);
            let mut descent = rows.index.begin_descent();
            let (found, place) = loop {
                if let Some(end) = rows.index.step_to_place(&key, &mut descent) {
                    break end;
                }
                if below(random, 3) == 0 {
                    change(&rows, &mut model, domain, random);
                }
            };
            if let Found::Record(record) = found {
                assert_eq!(rows.key(record), key);
            }
            if below(random, 3) == 0 {
                change(&rows, &mut model, domain, random);
            }
            let own = &mut Own { place, ..Own::default() };
            match rows.try_link(own, &key, |_| ()).unwrap() {
                (record, Linked::New { .. }) => assert!(model.insert(key, record).is_none()),
                (_, Linked::Existing(record)) => assert_eq!(model.get(&key), Some(&record)),
            }
        }
        rows.check();
        let all = rows.scan(&KeyRange::all(), Direction::Forward).0;
        assert!(all.iter().eq(model.keys()), "seed {seed}");
    }
}

/// The leaf that a lookup was about to read is divided, and the key belongs to the other half. For
/// some numbers of links, both halves have the same version.
#[test]
fn a_place_is_in_the_leaf_that_the_lookup_has_ended_in() {
    for (below, above) in (0..20).flat_map(|below| (0..20).map(move |above| (below, above))) {
        let (rows, own) = (Rows::new(1, 0), &mut Own::default());
        for key in (0..60).rev() {
            rows.link(own, &[key * 1_000]);
        }
        let key = [30_500];
        let mut descent = rows.index.begin_descent();
        assert!(rows.index.step_to_place(&key, &mut descent).is_none(), "the root is no leaf");
        for other in (30_500 - below..30_500).chain(30_501..30_501 + above) {
            rows.link(own, &[other]);
        }
        let (_, place) = rows.index.step_to_place(&key, &mut descent).expect("a leaf comes next");
        own.place = place;
        assert!(matches!(rows.try_link(own, &key, |_| ()), Ok((_, Linked::New { .. }))));
        rows.check();
        assert!(rows.find(&key).is_some(), "{below} {above}");
    }
}
