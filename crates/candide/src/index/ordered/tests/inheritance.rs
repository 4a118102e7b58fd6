//! A leaf inherits the slices of a dying leaf while a cursor is below the heir's inner node.

use crate::index::ordered::tests::*;
use std::ops::RangeInclusive;

/// Returns the slices under child `rank` of the root, which is an inner node.
fn slices_under(rows: &Rows, rank: usize) -> RangeInclusive<u64> {
    let (low, high) = rows.index.root().fences(rank, 0, u64::MAX);
    low..=high
}

/// Unlinks the records with the keys that are wanted; returns those keys.
fn unlink(
    rows: &Rows,
    records: &mut BTreeMap<u64, RecordAt>,
    own: &mut Own,
    wanted: impl Fn(u64) -> bool,
) -> Vec<u64> {
    let gone: Vec<u64> = records.keys().copied().filter(|&key| wanted(key)).collect();
    gone.iter().for_each(|key| rows.unlink(own, records.remove(key).unwrap()));
    gone
}

/// A leaf dies beside an inner node. The dead leaf's slices fall to the last leaf below that node,
/// or to the first, and the node does not change. A key that is then inserted there is beyond the
/// fences that the node had when the cursor passed it; the cursor returns the key once.
fn goes_once(node_words: usize, direction: Direction) {
    let rows = Rows::new(1, node_words);
    let (mut own, ahead) = (Own::default(), direction == Direction::Forward);
    let mut records: BTreeMap<_, _> =
        (1..700).map(|row| (10 * row, rows.link(&mut own, &[10 * row]).unwrap())).collect();
    let root = rows.index.root();
    assert!(root.children() > 3 && Node::at(root.child(0)).version() & INNER != 0);
    // One child of the root keeps a single leaf with one slice. The adjacent leaf, below the other
    // child, gets free space.
    let (dying, passed) = if ahead { (1, 0) } else { (0, 1) };
    let (dying, passed) = (slices_under(&rows, dying), slices_under(&rows, passed));
    let last = 10 + dying.start() / 10 * 10;
    let beside = if ahead { passed.end() / 10 * 10 } else { 10 + passed.start() / 10 * 10 };
    unlink(&rows, &mut records, &mut own, |key| {
        key == beside || dying.contains(&key) && key != last
    });

    let mut range = KeyRange::all();
    if !ahead {
        range.upper = Edge::new(&[*passed.end()], Bound::Included);
    }
    let mut cursor = rows.index.cursor(range.of_whole_keys(1), direction);
    assert!(matches!(rows.index.advance(&mut cursor, &mut |_, _| ()), Advance::Next(_)));
    assert_eq!(unlink(&rows, &mut records, &mut own, |key| dying.contains(&key)), [last]);
    rows.link(&mut own, &[last + 5]).unwrap();
    rows.check();
    let (keys, _) = rows.try_scan(&mut cursor).unwrap();
    assert_eq!(
        keys.iter().filter(|key| key[0] == last + 5).count(),
        1,
        "{node_words} {direction:?}"
    );
    assert!(keys.is_sorted_by(|a, b| if ahead { a < b } else { a > b }), "{keys:?}");
}

#[test]
fn a_cursor_visits_entries_inherited_by_a_leaf_once() {
    for node_words in [0, 2] {
        goes_once(node_words, Direction::Forward);
        goes_once(node_words, Direction::Reverse);
    }
}
