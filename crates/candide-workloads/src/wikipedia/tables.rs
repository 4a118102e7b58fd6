//! The tables, the counters for the numbers of new rows, and the storage of texts.

use candide::{Abort, Bytes, Database, Error, Protocol, Record, Table, TableOptions, Tx};

use super::knobs::{Texts, Wikipedia};
use super::rows::{
    Article, LogEntry, NamedPage, PART_BYTES, Page, PageId, Part, RecentChange, Revision, TextId,
    User, Watch, Watcher, text,
};
use crate::counter::Counter;

/// The number of parts of a text, or watched pages, that are looked up at once.
pub(super) const AT_ONCE: usize = 8;

/// All tables.
pub struct Tables<P: Protocol> {
    /// Users.
    pub users: Table<User, P>,
    /// Pages.
    pub pages: Table<Page, P>,
    /// Pages by name.
    pub page_names: Table<NamedPage, P>,
    /// Revisions.
    pub revisions: Table<Revision, P>,
    /// Texts.
    pub texts: Table<Article, P>,
    /// The parts of texts, if texts have any.
    pub parts: Table<Part, P>,
    /// Recent changes.
    pub recent_changes: Table<RecentChange, P>,
    /// The log.
    pub log: Table<LogEntry, P>,
    /// Watched pages by user.
    pub watches: Table<Watch, P>,
    /// Users by watched page.
    pub watchers: Table<Watcher, P>,
    /// The place of the bytes of texts.
    place: Texts,
}

impl<P: Protocol> Tables<P> {
    /// Creates the tables.
    pub(super) fn create(db: &Database<P>, knobs: &Wikipedia) -> Result<Self, Error> {
        Ok(Tables {
            users: numbered(db, "useracct", knobs)?,
            pages: numbered(db, "page", knobs)?,
            page_names: db.table("page_idx")?,
            revisions: numbered(db, "revision", knobs)?,
            texts: numbered(db, "text", knobs)?,
            parts: numbered(db, "text_part", knobs)?,
            recent_changes: numbered(db, "recentchanges", knobs)?,
            log: numbered(db, "logging", knobs)?,
            watches: db.table("watchlist")?,
            watchers: db.table("watchlist_idx")?,
            place: knobs.texts,
        })
    }

    /// Reads a text into `content`. Returns the page that is stored with the text.
    pub(super) fn read_text(
        &self,
        tx: &Tx<'_, P>,
        id: TextId,
        content: &mut Vec<u8>,
    ) -> Result<PageId, Abort> {
        if self.place == Texts::Whole {
            let columns = (Article::PAGE, Article::CONTENT);
            return self.texts.read_with(tx, id, columns, |(page, text)| {
                content.clear();
                content.extend_from_slice(text);
                page
            });
        }
        let (page, len) = self.texts.read(tx, &id, (Article::PAGE, Article::LEN))?;
        content.clear();
        let count = parts_of(len);
        for first in (0..count).step_by(AT_ONCE) {
            let keys = std::array::from_fn::<_, AT_ONCE, _>(|number| {
                (id, (first + number as u32).min(count - 1))
            });
            let parts = self.parts.find_many(tx, &keys)?;
            for part in parts.iter().take((count - first) as usize) {
                part.append_bytes(Part::BYTES, content)?;
            }
        }
        content.truncate(len as usize);
        Ok(page)
    }

    /// Inserts a text.
    pub(super) fn insert_text(
        &self,
        tx: &Tx<'_, P>,
        id: TextId,
        page: PageId,
        content: &[u8],
    ) -> Result<(), Abort> {
        let is_whole = self.place == Texts::Whole;
        self.texts.insert(
            tx,
            Article {
                id,
                flags: text("utf-8"),
                page,
                len: content.len() as u32,
                content: if is_whole { content.to_vec() } else { Vec::new() },
            },
        )?;
        if is_whole {
            return Ok(());
        }
        let part = |(number, bytes): (u32, &[u8])| {
            let bytes = Bytes::padded(bytes).expect("a part of a text has the length of a chunk");
            Part { text: id, number, bytes }
        };
        self.parts.insert_many(tx, (0..).zip(content.chunks(PART_BYTES)).map(part))
    }
}

/// Creates a table whose rows are never scanned, but only looked up by key.
fn numbered<R: Record, P: Protocol>(
    db: &Database<P>,
    name: &str,
    knobs: &Wikipedia,
) -> Result<Table<R, P>, Error> {
    let options = TableOptions::default();
    db.table_with(name, if knobs.hash_index { options } else { options.ordered() })
}

/// Returns the number of parts of a text of `len` bytes.
pub(super) fn parts_of(len: u32) -> u32 {
    len.div_ceil(PART_BYTES as u32)
}

/// The counters for the numbers of the rows that edits add.
pub(super) struct Numbers {
    revisions: Counter,
    texts: Counter,
    recent_changes: Counter,
    log: Counter,
}

/// The numbers of the rows that one edit adds.
#[derive(Debug, Clone, Copy)]
pub(super) struct EditNumbers {
    pub(super) revision: u64,
    pub(super) text: u64,
    pub(super) recent_change: u64,
    pub(super) log: u64,
}

impl Numbers {
    /// Creates counters that continue after `revisions` loaded revisions, each with a text.
    pub(super) fn after(revisions: u64) -> Self {
        Numbers {
            revisions: Counter::after(revisions),
            texts: Counter::after(revisions),
            recent_changes: Counter::after(0),
            log: Counter::after(0),
        }
    }

    pub(super) fn draw(&self) -> EditNumbers {
        EditNumbers {
            revision: self.revisions.draw(),
            text: self.texts.draw(),
            recent_change: self.recent_changes.draw(),
            log: self.log.draw(),
        }
    }

    /// Returns the number that the next edit would draw.
    pub(super) fn next(&self) -> EditNumbers {
        EditNumbers {
            revision: self.revisions.peek(),
            text: self.texts.peek(),
            recent_change: self.recent_changes.peek(),
            log: self.log.peek(),
        }
    }
}
