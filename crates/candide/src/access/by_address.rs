//! Places in a list by address: a short list is searched from its end, a long one has a hash table.

#![forbid(unsafe_code)]

use super::filter::mix;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The largest length of a list that is searched linearly.
const FEW: usize = 64;

/// A hash table with addresses as keys.
pub(crate) type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// A hasher for addresses, by one multiplication. The upper and the lowest bits of such addresses
/// hardly differ.
#[derive(Debug, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("addresses are hashed as numbers")
    }

    fn write_u64(&mut self, address: u64) {
        self.0 = mix(address).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The places of a list's items by their addresses, of which no two are equal; empty while the list
/// has at most `few` items. The owner of the list reports each change.
#[derive(Debug)]
pub(crate) struct ByAddress {
    map: AddressMap<u32>,
    few: usize,
}

impl Default for ByAddress {
    fn default() -> Self {
        ByAddress { map: AddressMap::default(), few: FEW }
    }
}

impl ByAddress {
    /// Returns the places of a list that is searched linearly, whatever its length.
    pub(super) fn never() -> ByAddress {
        ByAddress { few: usize::MAX, ..ByAddress::default() }
    }

    /// Returns the place of the item with this address.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        list: &[T],
        address_of: impl Fn(&T) -> u64,
        address: u64,
    ) -> Option<usize> {
        if list.len() <= self.few {
            // The latest item is compared first, since it is often looked up again soon.
            return list.iter().rposition(|item| address_of(item) == address);
        }
        self.map.get(&address).map(|&place| place as usize)
    }

    /// Notes that the items from place `from` on were added to the list; or, if `from` is 0, that
    /// the list was sorted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn added<T>(&mut self, list: &[T], from: usize, address_of: impl Fn(&T) -> u64) {
        if list.len() > self.few {
            self.enter(list, from, address_of);
        }
    }

    #[cold]
    fn enter<T>(&mut self, list: &[T], from: usize, address_of: impl Fn(&T) -> u64) {
        // A table that was cleared has room for items in another order without an allocation.
        let first = if from > self.few { from } else { 0 };
        if first == 0 {
            self.map.clear();
        }
        let places = (first..).zip(&list[first..]);
        self.map.extend(places.map(|(place, item)| (address_of(item), place as u32)));
    }

    /// Makes room for a list of `count` items.
    #[cold]
    pub(crate) fn reserve(&mut self, count: usize) {
        if count > self.few {
            self.map.reserve(count);
        }
    }

    /// Notes that the item with this address was removed from place `place` of the list, to which
    /// the last item has moved.
    pub(crate) fn swap_removed<T>(
        &mut self,
        list: &[T],
        place: usize,
        address_of: impl Fn(&T) -> u64,
        address: u64,
    ) {
        if list.len() <= self.few {
            self.map.clear();
            return;
        }
        self.map.remove(&address);
        if let Some(moved) = list.get(place) {
            self.map.insert(address_of(moved), place as u32);
        }
    }

    /// Notes that the list is about to be truncated to `kept` items.
    pub(crate) fn truncate<T>(&mut self, list: &[T], kept: usize, address_of: impl Fn(&T) -> u64) {
        if kept <= self.few {
            self.map.clear();
        } else {
            for item in &list[kept..] {
                self.map.remove(&address_of(item));
            }
        }
    }

    /// Notes that the list, which has `count` items, is about to be cleared.
    #[inline]
    pub(crate) fn clear(&mut self, count: usize) {
        if !self.map.is_empty() {
            self.clear_table(count);
        }
    }

    #[cold]
    fn clear_table(&mut self, count: usize) {
        if self.map.capacity() > 32 * count {
            // The table has grown for a far longer list. Clearing it each time would cost more than
            // growing a new one.
            self.map = AddressMap::default();
        } else {
            self.map.clear();
        }
    }

    #[cfg(test)]
    pub(crate) fn capacity_for_tests(&self) -> usize {
        self.map.capacity()
    }
}
