//! Checks of row types and of their indexes.

#![forbid(unsafe_code)]

use crate::engine::{INDEXES_MAX, IndexPlan};
use crate::error::Error;
use crate::record::RECORD_WORDS_MAX;
use crate::schema::{Group, KEY_WORDS_MAX, RowType, image_words};

/// Checks that `index` can be made on the row type `row`, whose primary keys have `primary_words`
/// words.
pub(super) fn check_index(
    row: &'static str,
    index: &IndexPlan,
    primary_words: usize,
) -> Result<(), Error> {
    if index.fits(primary_words) {
        return Ok(());
    }
    let (name, own, all) = (&index.name, index.key_words, index.entry_words(primary_words).0);
    let problem = format!(
        "the entries of its index {name:?} would have a key of {all} words, {own} of them the index's own; 1 is the least of these, \
         {KEY_WORDS_MAX} the most of all"
    );
    Err(Error::RowType { row, problem })
}

/// Checks the constants of a `Record` implementation.
pub(super) fn check_row_type(row: &RowType) -> Result<(), Error> {
    let problem = |problem: String| Err(Error::RowType { row: row.name, problem });
    let groups = row.groups;
    if groups.is_empty() || groups.len() > Group::COUNT_MAX {
        return problem(format!(
            "it has {} groups; 1 to {} are possible",
            groups.len(),
            Group::COUNT_MAX
        ));
    }
    if let Some(group) = groups.iter().find(|group| !(1..=RECORD_WORDS_MAX).contains(&group.words))
    {
        let (name, words) = (group.name, group.words);
        return problem(format!(
            "group {name:?} has {words} words; 1 to {RECORD_WORDS_MAX} are possible"
        ));
    }
    if !(1..=KEY_WORDS_MAX).contains(&row.key_words) {
        let words = row.key_words;
        return problem(format!("its key has {words} words; 1 to {KEY_WORDS_MAX} are possible"));
    }
    if row.key_widths.len() != row.key_words {
        let (words, widths) = (row.key_words, row.key_widths.len());
        return problem(format!(
            "its key has {words} words, but `Key::WIDTHS` has the widths of {widths}"
        ));
    }
    if let Some(width) = row.key_widths.iter().find(|width| !(1..=u64::BITS).contains(width)) {
        return problem(format!(
            "a word of its key is said to have {width} bits; 1 to 64 are possible"
        ));
    }
    if row.indexes.len() > INDEXES_MAX {
        return problem(format!(
            "it has {} indexes; {INDEXES_MAX} are possible",
            row.indexes.len()
        ));
    }
    if let Some(word) = row.long.iter().find(|&&word| usize::from(word) >= image_words(groups)) {
        return problem(format!("its column of any length at word {word} is beyond its groups"));
    }
    if !row.long.is_empty() && !row.is_plain_image {
        let what = "its image is of a type of its own; a row with strings or bytes of any length";
        return problem(format!("{what} has `[u64; {}]`", image_words(groups)));
    }
    let (image, words) = (row.image_words, image_words(groups));
    if image != words {
        return problem(format!(
            "its image has {image} words but its groups have {words}; use [u64; {words}]"
        ));
    }
    Ok(())
}
