//! Transactions by which a user starts or stops watching a page.

use candide::{Abort, Protocol, Tx};

use super::rows::{PageName, Time, User, UserId, Watch, WatchKey, Watcher, WatcherKey, time};
use super::site::Site;

/// The namespace of articles, and the namespace of their talk pages. A user that watches an article
/// also watches its talk page.
const ARTICLES: i32 = 0;
pub(super) const TALK: i32 = 1;

/// The numbers of rows that a transaction has added to the tables of watches and watchers, or has
/// removed from these tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rows {
    pub(super) watches: u64,
    pub(super) watchers: u64,
}

impl Rows {
    pub(super) fn add(&mut self, other: Rows) {
        self.watches += other.watches;
        self.watchers += other.watchers;
    }
}

impl<P: Protocol> Site<P> {
    /// Adds a page to a user's list. An article is added together with its talk page.
    pub(super) fn add_watch(
        &self,
        tx: &Tx<'_, P>,
        user: UserId,
        page: &PageName,
        now: Time,
    ) -> Result<Rows, Abort> {
        let mut added = Rows {
            watches: self.enter_watch(tx, user, *page)?,
            watchers: self.enter_watcher(tx, user, *page)?,
        };
        if let Some(talk) = talk_about(page) {
            added.watches += self.enter_watch(tx, user, talk)?;
            if self.knobs.index_talk {
                added.watchers += self.enter_watcher(tx, user, talk)?;
            }
        }
        self.tables.users.update(tx, &user, User::TOUCHED.set(now))?;
        Ok(added)
    }

    fn enter_watch(&self, tx: &Tx<'_, P>, user: UserId, page: PageName) -> Result<u64, Abort> {
        let row = Watch { key: WatchKey { user, page }, notified: time(0) };
        Ok(u64::from(self.tables.watches.insert_if_absent(tx, row)?))
    }

    fn enter_watcher(&self, tx: &Tx<'_, P>, user: UserId, page: PageName) -> Result<u64, Abort> {
        Ok(u64::from(
            self.tables
                .watchers
                .insert_if_absent(tx, Watcher { key: WatcherKey { page, user } })?,
        ))
    }

    /// Removes a page from a user's list. Nothing happens if the page is not in the list.
    pub(super) fn remove_watch(
        &self,
        tx: &Tx<'_, P>,
        user: UserId,
        page: &PageName,
        now: Time,
    ) -> Result<Rows, Abort> {
        let mut removed = self.strike(tx, user, *page)?;
        if let Some(talk) = talk_about(page).filter(|_| self.knobs.index_talk) {
            removed.add(self.strike(tx, user, talk)?);
        }
        self.tables.users.update(tx, &user, User::TOUCHED.set(now))?;
        Ok(removed)
    }

    fn strike(&self, tx: &Tx<'_, P>, user: UserId, page: PageName) -> Result<Rows, Abort> {
        Ok(Rows {
            watches: u64::from(
                self.tables.watches.delete_if_present(tx, &WatchKey { user, page })?,
            ),
            watchers: u64::from(
                self.tables.watchers.delete_if_present(tx, &WatcherKey { page, user })?,
            ),
        })
    }
}

/// Returns the name of an article's talk page; `None` for other pages. No row of the table of pages
/// has such a name.
pub(super) fn talk_about(page: &PageName) -> Option<PageName> {
    (page.namespace == ARTICLES).then_some(PageName { namespace: TALK, ..*page })
}
