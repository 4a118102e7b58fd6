//! The check, which reads all tables in two ways.

use std::cell::RefCell;
use std::ops::Bound::{Excluded, Included};

use candide::{Abort, Error, Protocol, Session};

use super::conditions::Account;
use super::contents::Contents;
use super::editing::all_watchers;
use super::knobs::Wikipedia;
use super::rows::{
    Article, LogEntry, NamedPage, Page, PageName, Part, RecentChange, Revision, TextId, User,
    Watch, WatchKey, Watcher, text,
};
use super::site::Site;
use super::tables::{EditNumbers, parts_of};
use super::watching::talk_about;
use crate::read_back::{LongRows, Rows, Way, audit, long_rows, rows};
use crate::{Consistency, Failure};

/// The tables, by means that do not depend on the protocol.
struct Tables<'a> {
    users: Rows<'a, User>,
    pages: Rows<'a, Page>,
    page_names: Rows<'a, NamedPage>,
    revisions: Rows<'a, Revision>,
    texts: LongRows<'a, Article>,
    parts: Rows<'a, Part>,
    recent_changes: Rows<'a, RecentChange>,
    log: Rows<'a, LogEntry>,
    watches: Rows<'a, Watch>,
    watchers: Rows<'a, Watcher>,
}

/// Compares the tables with one another, and with the account of loaded rows and committed
/// transactions.
pub(super) fn check<P: Protocol>(
    site: &Site<P>,
    session: Session<P>,
    account: &Account,
) -> Result<Consistency, Failure> {
    let (session, of) = (&RefCell::new(session), &site.tables);
    let tables = Tables {
        users: rows(&of.users, session),
        pages: rows(&of.pages, session),
        page_names: rows(&of.page_names, session),
        revisions: rows(&of.revisions, session),
        texts: long_rows(&of.texts, session),
        parts: rows(&of.parts, session),
        recent_changes: rows(&of.recent_changes, session),
        log: rows(&of.log, session),
        watches: rows(&of.watches, session),
        watchers: rows(&of.watchers, session),
    };
    settle(&tables, &site.knobs, &site.names, &site.numbers.next(), account)
}

fn settle(
    tables: &Tables<'_>,
    knobs: &Wikipedia,
    names: &[PageName],
    next: &EditNumbers,
    account: &Account,
) -> Result<Consistency, Failure> {
    let mut consistency = audit(
        |way| match way {
            Way::Transactions => Ok(tables.read_by_transactions(knobs, names, next)?),
            Way::Iteration => Ok(tables.read_by_iteration()?),
        },
        |contents, way, consistency| account.settle(way, contents, knobs, consistency),
        |looked_up, iterated| looked_up.counts() == iterated.counts(),
        |contents| format!("{:?}", contents.counts()),
    )?;
    account.settle_reads(&mut consistency);
    Ok(consistency)
}

impl Tables<'_> {
    fn read_by_iteration(&self) -> Result<Contents, Error> {
        let mut contents = Contents::default();
        self.users.by_iteration(&mut |row| contents.user(row))?;
        self.pages.by_iteration(&mut |row| contents.page(row))?;
        self.page_names.by_iteration(&mut |row| contents.name(row))?;
        self.revisions.by_iteration(&mut |row| contents.revision(row))?;
        self.texts.by_iteration(&mut |row| contents.text(row))?;
        self.parts.by_iteration(&mut |row| contents.part(row))?;
        self.recent_changes.by_iteration(&mut |row| contents.change(row))?;
        self.log.by_iteration(&mut |row| contents.log_entry(row))?;
        self.watches.by_iteration(&mut |row| contents.watch(row))?;
        self.watchers.by_iteration(&mut |row| contents.watcher(row))?;
        Ok(contents)
    }

    /// Reads rows by the keys that rows must have. Rows with other keys are found only by
    /// iteration.
    fn read_by_transactions(
        &self,
        knobs: &Wikipedia,
        names: &[PageName],
        next: &EditNumbers,
    ) -> Result<Contents, Abort> {
        let mut contents = Contents::default();
        self.users.by_keys(&mut (0..=knobs.users), &mut |row| contents.user(row))?;
        self.pages.by_keys(&mut (0..=knobs.pages), &mut |row| contents.page(row))?;
        self.revisions.by_keys(&mut (0..next.revision), &mut |row| contents.revision(row))?;
        self.recent_changes
            .by_keys(&mut (0..next.recent_change), &mut |row| contents.change(row))?;
        self.log.by_keys(&mut (0..next.log), &mut |row| contents.log_entry(row))?;
        let mut texts: Vec<(TextId, u32)> = Vec::new();
        self.texts.by_keys(&mut (0..next.text), &mut |row| {
            contents.text(row);
            texts.push((row.id, row.len));
        })?;
        let mut parts =
            texts.iter().flat_map(|&(id, len)| (0..parts_of(len)).map(move |number| (id, number)));
        self.parts.by_keys(&mut parts, &mut |row| contents.part(row))?;
        for user in 1..=knobs.users {
            let first =
                |user| WatchKey { user, page: PageName { namespace: i32::MIN, title: text("") } };
            self.watches.by_scans(
                Included(first(user)),
                Excluded(first(user + 1)),
                &mut |row| contents.watch(row),
            )?;
        }
        self.page_names.by_keys(&mut names.iter().copied(), &mut |row| contents.name(row))?;
        for name in names {
            for watched in [Some(*name), talk_about(name)].into_iter().flatten() {
                let (first, last) = all_watchers(&watched).into_inner();
                self.watchers
                    .by_scans(Included(first), Included(last), &mut |row| contents.watcher(row))?;
            }
        }
        Ok(contents)
    }
}
