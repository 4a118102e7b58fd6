//! Tests of the time at which nodes are used again.

use crate::sync::queue_lock::nodes::{DESKS, Group, Node, SLOTS};
use crate::sync::queue_lock::{Nodes, Supply};
use std::sync::OnceLock;

#[test]
fn a_node_is_used_again_when_no_session_can_see_it() {
    let nodes = Nodes::new();
    let mut supply = Supply::new(5);
    let all: Vec<_> = (1..SLOTS).map(|_| supply.take(&nodes, 0).unwrap()).collect();
    let distinct: std::collections::BTreeSet<u64> = all.iter().map(|id| id.word()).collect();
    assert_eq!(distinct.len(), usize::from(SLOTS) - 1);
    assert_eq!(supply.take(&nodes, 9), None, "all are taken");
    supply.give_back(&nodes, all[3], 9);
    assert_eq!(supply.take(&nodes, 9), None, "a session of epoch 9 may still see it");
    assert_eq!(supply.take(&nodes, 10), Some(all[3]));
    assert_eq!(supply.take(&nodes, 11), None);
    supply.give_back(&nodes, all[7], 11);
    supply.give_back(&nodes, all[5], 12);
    let mut next = Supply::new(5);
    assert_eq!(next.take(&nodes, 11), None, "the desk's next session does not take it either");
    assert_eq!(next.take(&nodes, 12), Some(all[7]));
    assert_eq!((next.take(&nodes, 12), next.take(&nodes, 13)), (None, Some(all[5])));
}

#[test]
fn nodes_and_their_table_have_the_size_that_is_stated() {
    assert_eq!((size_of::<Node>(), align_of::<Node>()), (64, 64));
    assert_eq!(size_of::<Node>() * usize::from(SLOTS), 64 << 10);
    assert_eq!(size_of::<OnceLock<Group>>() * DESKS, 384 << 10);
}
