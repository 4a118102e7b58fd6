//! Groups of columns.

#![forbid(unsafe_code)]

/// A column group: the unit of conflict. Reading one group never conflicts with writing another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Group {
    /// The group's name, for reports of conflicts.
    pub name: &'static str,
    /// The group's size in words of eight bytes; at least one word.
    pub words: usize,
}

impl Group {
    /// Returns a group of `words` words.
    pub const fn new(name: &'static str, words: usize) -> Group {
        Group { name, words }
    }
}

impl Group {
    /// The largest number of groups of a record.
    pub const COUNT_MAX: usize = 64;
}

/// Returns the set of the first `count` groups, one bit each.
pub(crate) fn all_groups(count: usize) -> u64 {
    if count == Group::COUNT_MAX { u64::MAX } else { (1 << count) - 1 }
}

/// Returns the number of words outside the key.
pub(crate) const fn image_words(groups: &[Group]) -> usize {
    start_of(groups, groups.len())
}

/// The largest number of groups of a row, as an array length.
pub(crate) const GROUPS_MAX: usize = u64::BITS as usize;

/// Returns the number of the first word of each group, among the words of all groups.
pub(crate) const fn starts_of(groups: &[Group]) -> [u16; GROUPS_MAX] {
    let (mut starts, mut group) = ([0; GROUPS_MAX], 0);
    while group < groups.len() && group < GROUPS_MAX {
        starts[group] = start_of(groups, group) as u16;
        group += 1;
    }
    starts
}

/// Returns the number of the first word of `group`, among the words of all groups.
pub(crate) const fn start_of(groups: &[Group], group: usize) -> usize {
    let (mut start, mut index) = (0, 0);
    while index < group {
        start += groups[index].words;
        index += 1;
    }
    start
}
