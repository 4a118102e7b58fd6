//! The contents of the tables, as found by one of the two ways of reading: the columns that the
//! check needs, and a fingerprint of all rows.

use std::collections::{HashMap, HashSet};

use super::content::is_character;
use super::rows::{
    Article, LogEntry, NamedPage, PART_BYTES, Page, PageId, PageName, Part, RecentChange, Revision,
    RevisionId, TextId, User, UserId, Watch, WatchKey, Watcher, WatcherKey,
};
use crate::read_back::fingerprint;

/// The columns of a revision that the check needs.
#[derive(Debug)]
pub(super) struct RevisionEntry {
    pub(super) page: PageId,
    pub(super) text: TextId,
    pub(super) user: UserId,
    pub(super) len: u32,
}

/// A text, and the result of comparing its bytes.
#[derive(Debug)]
pub(super) struct TextEntry {
    pub(super) page: PageId,
    pub(super) len: u32,
    /// Whether the row has the whole text.
    pub(super) is_whole: bool,
    /// The number of parts that have exactly the bytes that a part should have.
    pub(super) parts: u32,
}

/// The columns of a page that the check needs.
#[derive(Debug)]
pub(super) struct PageEntry {
    pub(super) name: PageName,
    pub(super) latest: RevisionId,
    pub(super) len: u32,
}

/// The columns of a recent change that the check needs.
#[derive(Debug)]
pub(super) struct ChangeEntry {
    pub(super) user: UserId,
    pub(super) page: PageId,
    pub(super) text: TextId,
    pub(super) len: u32,
}

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The number of edits of each user, as stored in the user's row.
    pub(super) users: HashMap<UserId, i32>,
    pub(super) pages: HashMap<PageId, PageEntry>,
    pub(super) names: HashMap<PageName, PageId>,
    pub(super) revisions: HashMap<RevisionId, RevisionEntry>,
    pub(super) texts: HashMap<TextId, TextEntry>,
    pub(super) parts: u64,
    pub(super) changes: Vec<ChangeEntry>,
    /// The users and the pages of all edits, as stored in the log.
    pub(super) log: Vec<(UserId, PageId)>,
    pub(super) watches: HashSet<WatchKey>,
    pub(super) watchers: HashSet<WatchKey>,
    fingerprint: u64,
}

impl Contents {
    pub(super) fn user(&mut self, row: &User) {
        self.print(
            0,
            row.id,
            &[row.name.as_str().as_bytes(), row.touched.as_bytes(), &row.edit_count.to_le_bytes()],
        );
        self.users.insert(row.id, row.edit_count);
    }

    pub(super) fn page(&mut self, row: &Page) {
        let &Page { id, namespace, title, latest, len, .. } = row;
        let numbers = [row.is_redirect as u64, row.is_new as u64, latest, u64::from(len)];
        self.print(
            1,
            id,
            &[title.as_str().as_bytes(), row.touched.as_bytes(), &bytes_of(&numbers)],
        );
        self.pages.insert(id, PageEntry { name: PageName { namespace, title }, latest, len });
    }

    pub(super) fn name(&mut self, row: &NamedPage) {
        self.print(
            2,
            row.page,
            &[row.name.title.as_str().as_bytes(), &row.name.namespace.to_le_bytes()],
        );
        self.names.insert(row.name, row.page);
    }

    pub(super) fn revision(&mut self, row: &Revision) {
        let &Revision { id, page, text, user, len, parent, .. } = row;
        let numbers = [page, text, user, u64::from(len), parent, row.minor_edit as u64];
        self.print(
            3,
            id,
            &[row.comment.as_str().as_bytes(), row.timestamp.as_bytes(), &bytes_of(&numbers)],
        );
        self.revisions.insert(id, RevisionEntry { page, text, user, len });
    }

    /// Adds a text. A text has to be added before its parts.
    pub(super) fn text(&mut self, row: &Article) {
        self.print(
            4,
            row.id,
            &[
                row.flags.as_str().as_bytes(),
                &bytes_of(&[row.page, u64::from(row.len)]),
                &row.content,
            ],
        );
        let is_whole = row.content.len() == row.len as usize
            && row.content.iter().all(|&byte| is_character(byte));
        self.texts.insert(row.id, TextEntry { page: row.page, len: row.len, is_whole, parts: 0 });
    }

    pub(super) fn part(&mut self, row: &Part) {
        self.print(5, row.text << 20 | u64::from(row.number), &[row.bytes.as_bytes()]);
        self.parts += 1;
        let Some(text) = self.texts.get_mut(&row.text) else { return };
        let used =
            (text.len as usize).saturating_sub(row.number as usize * PART_BYTES).min(PART_BYTES);
        let (used, unused) = row.bytes.as_bytes().split_at(used);
        let is_good =
            used.iter().all(|&byte| is_character(byte)) && unused.iter().all(|&byte| byte == 0);
        text.parts += u32::from(is_good && !used.is_empty());
    }

    pub(super) fn change(&mut self, row: &RecentChange) {
        let &RecentChange { id, user, page, text, new_len: len, .. } = row;
        self.print(
            6,
            id,
            &[
                row.timestamp.as_bytes(),
                &bytes_of(&[user, page, text, row.last_text, u64::from(len)]),
            ],
        );
        self.changes.push(ChangeEntry { user, page, text, len });
    }

    pub(super) fn log_entry(&mut self, row: &LogEntry) {
        self.print(7, row.id, &[row.timestamp.as_bytes(), &bytes_of(&[row.user, row.page])]);
        self.log.push((row.user, row.page));
    }

    pub(super) fn watch(&mut self, row: &Watch) {
        let WatchKey { user, page } = row.key;
        self.print(
            8,
            user,
            &[
                page.title.as_str().as_bytes(),
                &page.namespace.to_le_bytes(),
                row.notified.as_bytes(),
            ],
        );
        self.watches.insert(row.key);
    }

    pub(super) fn watcher(&mut self, row: &Watcher) {
        let WatcherKey { user, page } = row.key;
        self.print(9, user, &[page.title.as_str().as_bytes(), &page.namespace.to_le_bytes()]);
        self.watchers.insert(WatchKey { user, page });
    }

    fn print(&mut self, table: u64, id: u64, columns: &[&[u8]]) {
        let row = columns.iter().fold(table << 56 ^ id, |print, column| fingerprint(print, column));
        self.fingerprint = self.fingerprint.wrapping_add(row);
    }

    /// Returns the number of rows of each table, and the sum of the fingerprints. Two ways of
    /// reading have equal counts if they read the same rows.
    pub(super) fn counts(&self) -> [u64; 11] {
        let rows = [
            self.users.len(),
            self.pages.len(),
            self.names.len(),
            self.revisions.len(),
            self.texts.len(),
            self.parts as usize,
            self.changes.len(),
            self.log.len(),
            self.watches.len(),
            self.watchers.len(),
        ];
        let mut counts = [self.fingerprint; 11];
        counts.iter_mut().zip(rows).for_each(|(count, rows)| *count = rows as u64);
        counts
    }
}

fn bytes_of(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
