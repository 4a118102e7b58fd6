//! Filling the tables.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use candide::{Abort, Database, Protocol, Session, Tx};

use super::content;
use super::knobs::{THETA_PAGES, THETA_WATCHES, WATCHES_MAX, Wikipedia};
use super::rows::{
    NamedPage, Page, PageId, PageName, Revision, RevisionId, User, UserId, Watch, WatchKey,
    Watcher, WatcherKey, text, time,
};
use super::tables::Tables;
use crate::rng::stream;
use crate::{Failure, Loading, Zipf};

/// The first random stream of the loader. Lower streams belong to the threads that run
/// transactions.
const FIRST_STREAM: u64 = 1 << 32;

/// The time of loading.
const TIME: u64 = 1;

/// The comment of every edit.
pub(super) const COMMENT: &str = "a small improvement";
/// The address of every author.
pub(super) const ADDRESS: &str = "192.0.2.1";

/// Fills the tables. Returns the number of revisions.
pub(super) fn load<P: Protocol>(
    tables: &Tables<P>,
    db: &Database<P>,
    knobs: &Wikipedia,
    names: &[PageName],
    loading: &Loading<'_>,
) -> Result<u64, Failure> {
    let mut firsts = Vec::with_capacity(names.len());
    let mut next = 1;
    for page in 1..=knobs.pages {
        firsts.push(next);
        next += content::revisions(&mut stream(loading.seed, FIRST_STREAM + page * 2));
    }
    firsts.push(next);
    let edits: Vec<AtomicU32> = (0..knobs.users).map(|_| AtomicU32::new(0)).collect();
    let loader = Loader { tables, knobs, names, loading, edits };
    loading.share(db, names.len(), |session, number| {
        loader.page(session, number as PageId + 1, firsts[number], firsts[number + 1])?;
        (loading.progress)(1);
        Ok(())
    })?;
    loading.fill(db, knobs.users, |tx, number| loader.user(tx, number + 1))?;
    Ok(next - 1)
}

struct Loader<'a, P: Protocol> {
    tables: &'a Tables<P>,
    knobs: &'a Wikipedia,
    names: &'a [PageName],
    loading: &'a Loading<'a>,
    /// The number of edits of each user.
    edits: Vec<AtomicU32>,
}

impl<P: Protocol> Loader<'_, P> {
    /// Inserts a page with its revisions from `first` up to, but not including, `end`.
    fn page(
        &self,
        session: &mut Session<P>,
        id: PageId,
        first: RevisionId,
        end: RevisionId,
    ) -> Result<(), Failure> {
        let mut rng = stream(self.loading.seed, FIRST_STREAM + id * 2 + 1);
        let mut content = content::first_text(&mut rng);
        for revision in first..end {
            self.loading.go_on()?;
            if revision > first {
                content::edit(&mut content, &mut rng);
            }
            let user = rng.u64(1..=self.knobs.users);
            self.edits[user as usize - 1].fetch_add(1, Ordering::Relaxed);
            let row = Revision {
                id: revision,
                page: id,
                text: revision,
                comment: text(COMMENT),
                user,
                user_text: text(ADDRESS),
                timestamp: time(TIME),
                minor_edit: content::minor_edit(&mut rng),
                deleted: 0,
                len: content.len() as u32,
                parent: if revision > first { revision - 1 } else { 0 },
            };
            session.run(|tx| {
                self.tables.insert_text(tx, revision, id, &content)?;
                self.tables.revisions.insert(tx, row)
            })?;
        }
        let name = self.names[id as usize - 1];
        let page = Page {
            id,
            namespace: name.namespace,
            title: name.title,
            restrictions: text(content::restrictions(&mut rng)),
            counter: 0,
            random: rng.f32(),
            is_redirect: 0,
            is_new: 0,
            touched: time(TIME),
            latest: end - 1,
            len: content.len() as u32,
        };
        Ok(session.run(|tx| {
            self.tables.pages.insert(tx, page)?;
            self.tables.page_names.insert(tx, NamedPage { name, page: id })
        })?)
    }

    /// Inserts a user, with the number of the user's edits, and the pages that the user watches.
    fn user(&self, tx: &Tx<'_, P>, id: UserId) -> Result<(), Abort> {
        let mut rng = stream(self.loading.seed, FIRST_STREAM + (self.knobs.pages + 1 + id) * 2);
        let user = User {
            id,
            name: text(&content::name(&mut rng)),
            real_name: text(&content::name(&mut rng)),
            password: text("***"),
            new_password: text("***"),
            new_password_time: time(TIME),
            email: text("fake@example.com"),
            options: text("fake_longoptionslist"),
            token: text(&(0..32).map(|_| rng.alphanumeric()).collect::<String>()),
            email_authenticated: text("null"),
            email_token: text("null"),
            email_token_expires: time(0),
            registration: time(TIME),
            touched: time(TIME),
            edit_count: self.edits[id as usize - 1].load(Ordering::Relaxed) as i32,
        };
        self.tables.users.insert(tx, user)?;
        let count =
            Zipf::new(WATCHES_MAX + 1, THETA_WATCHES).sample(&mut rng).min(self.knobs.pages);
        let pages = Zipf::new(self.knobs.pages, THETA_PAGES);
        let mut watched = HashSet::new();
        while (watched.len() as u64) < count {
            let place = pages.sample(&mut rng) as usize;
            if !watched.insert(place) {
                continue;
            }
            let page = self.names[place];
            self.tables
                .watches
                .insert(tx, Watch { key: WatchKey { user: id, page }, notified: time(0) })?;
            self.tables.watchers.insert(tx, Watcher { key: WatcherKey { page, user: id } })?;
        }
        Ok(())
    }
}
