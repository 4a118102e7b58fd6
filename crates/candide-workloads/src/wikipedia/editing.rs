//! Editing a page: a new text, a new revision, an entry in each of two lists, and notifications of
//! the users that watch the page.

use std::ops::RangeInclusive;

use candide::{Abort, Protocol, Tx};

use super::loader::{ADDRESS, COMMENT};
use super::pages::Found;
use super::rows::{
    LogEntry, Page, PageName, RecentChange, Revision, Text255, Time, User, UserId, Watch, WatchKey,
    WatcherKey, text,
};
use super::site::Site;
use super::tables::{AT_ONCE, EditNumbers};

/// An edit, based on the revision that its author has read.
pub(super) struct Edit<'a> {
    pub(super) user: UserId,
    pub(super) name: &'a PageName,
    /// The page as the author has read it in an earlier transaction.
    pub(super) read: Found,
    pub(super) content: &'a [u8],
    pub(super) numbers: EditNumbers,
    pub(super) minor: i32,
    pub(super) now: Time,
}

impl Edit<'_> {
    /// Returns the title as a text with more room.
    fn title(&self) -> Text255 {
        text(self.name.title.as_str())
    }

    fn revision(&self) -> Revision {
        Revision {
            id: self.numbers.revision,
            page: self.read.page,
            text: self.numbers.text,
            comment: text(COMMENT),
            user: self.user,
            user_text: text(ADDRESS),
            timestamp: self.now,
            minor_edit: self.minor,
            deleted: 0,
            len: self.content.len() as u32,
            parent: self.read.revision,
        }
    }

    fn recent_change(&self) -> RecentChange {
        let len = self.content.len() as u32;
        RecentChange {
            id: self.numbers.recent_change,
            timestamp: self.now,
            cur_time: self.now,
            user: self.user,
            user_text: text(ADDRESS),
            namespace: self.name.namespace,
            title: self.title(),
            comment: text(COMMENT),
            minor: 0,
            bot: 0,
            new: 0,
            page: self.read.page,
            text: self.numbers.text,
            last_text: self.read.text,
            kind: 0,
            moved_to_namespace: 0,
            moved_to_title: text(""),
            patrolled: 0,
            ip: text(ADDRESS),
            old_len: len,
            new_len: len,
            deleted: 0,
            log: 0,
            log_type: text(""),
            log_action: text(""),
            params: text(""),
        }
    }

    fn log_entry(&self) -> LogEntry {
        LogEntry {
            id: self.numbers.log,
            kind: text("patrol"),
            action: text("patrol"),
            timestamp: self.now,
            user: self.user,
            namespace: self.name.namespace,
            title: self.title(),
            comment: text(COMMENT),
            params: text(""),
            deleted: 0,
            user_text: text(ADDRESS),
            page: self.read.page,
        }
    }
}

impl<P: Protocol> Site<P> {
    /// Makes the page point to the new text, and collects in `watchers` the users that watch the
    /// page. If no user watches the page, also concludes the edit.
    pub(super) fn update_page(
        &self,
        tx: &Tx<'_, P>,
        edit: &Edit<'_>,
        watchers: &mut Vec<UserId>,
    ) -> Result<(), Abort> {
        let tables = &self.tables;
        let (page, numbers) = (edit.read.page, edit.numbers);
        tables.insert_text(tx, numbers.text, page, edit.content)?;
        tables.revisions.insert(tx, edit.revision())?;
        let update = (
            Page::IS_REDIRECT.set(0),
            Page::IS_NEW.set(0),
            Page::TOUCHED.set(edit.now),
            Page::LATEST.set(numbers.revision),
            Page::LEN.set(edit.content.len() as u32),
        );
        tables.pages.update(tx, &page, update)?;
        tables.recent_changes.insert(tx, edit.recent_change())?;

        watchers.clear();
        for watcher in tables.watchers.scan(tx, all_watchers(edit.name), ()) {
            watchers.push(watcher?.0.user);
        }
        if watchers.is_empty() { self.conclude(tx, edit) } else { Ok(()) }
    }

    /// Notifies the users in `watchers` that still watch the page.
    pub(super) fn notify(
        &self,
        tx: &Tx<'_, P>,
        edit: &Edit<'_>,
        watchers: &[UserId],
    ) -> Result<(), Abort> {
        for users in watchers.chunks(AT_ONCE) {
            let user = |place: usize| users[place.min(users.len() - 1)];
            let keys = std::array::from_fn::<_, AT_ONCE, _>(|place| WatchKey {
                user: user(place),
                page: *edit.name,
            });
            let watches = &self.tables.watches.find_many(tx, &keys)?[..users.len()];
            watches.iter().for_each(|watch| watch.prefetch(Watch::NOTIFIED));
            for watch in watches {
                watch.update_if_present(Watch::NOTIFIED.set(edit.now))?;
            }
        }
        Ok(())
    }

    /// Adds the edit to the log and to its author's number of edits.
    pub(super) fn conclude(&self, tx: &Tx<'_, P>, edit: &Edit<'_>) -> Result<(), Abort> {
        self.tables.log.insert(tx, edit.log_entry())?;
        self.tables.users.update(
            tx,
            &edit.user,
            (User::EDIT_COUNT.wrapping_add(1), User::TOUCHED.set(edit.now)),
        )
    }
}

/// Returns the range of the keys of all users that watch a page.
pub(super) fn all_watchers(page: &PageName) -> RangeInclusive<WatcherKey> {
    let key = |user| WatcherKey { page: *page, user };
    key(0)..=key(UserId::MAX)
}
