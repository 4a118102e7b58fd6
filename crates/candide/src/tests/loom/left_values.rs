//! Values that a session leaves while another thread takes them.

use super::explore_as_it_is;
use crate::gc::LeftValues;
use crate::record::value::Value;
use crate::sync::thread;
use std::collections::BTreeSet;
use std::sync::Arc;

/// With five forced switches.
#[test]
fn loom_values_are_left_while_others_are_taken() {
    explore_as_it_is(5, || {
        let left = Arc::new(LeftValues::default());
        let of_session = left.clone();
        let session = thread::spawn(move || {
            (0..2).for_each(|number| of_session.put(Value::new(number)).expect("there is room"));
        });
        let mut taken = Vec::new();
        left.take(&mut taken);
        session.join().unwrap();
        left.take(&mut taken);
        let words: BTreeSet<u64> = taken.iter().map(Value::word).collect();
        assert_eq!((taken.len(), words.len(), left.is_empty()), (2, 2, true));
    });
}
