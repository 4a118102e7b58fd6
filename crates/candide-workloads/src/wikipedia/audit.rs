//! The check: reading everything in two ways.

use candide::{Abort, KeyRange, Ordered, Protocol, Record, Session, Table, Whole};

use super::Site;
use super::books::Books;
use super::editing::all_watchers;
use super::rows::{PageName, TextId, Watch, WatchKey, Watcher, text};
use super::tables::{Tables, parts_of};
use super::verdict::Account;
use super::watching::talk_about;
use crate::read_back::by_transactions;
use crate::{Consistency, Failure};

/// Compares the tables with one another, with what was loaded and with what was committed.
pub(super) fn check<P: Protocol>(
    site: &Site<P>,
    mut session: Session<P>,
    account: &Account,
) -> Result<Consistency, Failure> {
    let looked_up = read_by_transactions(site, &mut session)?;
    let iterated = read_by_iteration(&site.tables)?;
    let mut consistency = Consistency::default();
    account.settle("read by transactions", &looked_up, &site.knobs, &mut consistency);
    account.settle("read by raw iteration", &iterated, &site.knobs, &mut consistency);
    let (looked_up, iterated) = (looked_up.counts(), iterated.counts());
    consistency.expect(looked_up == iterated, || {
        format!("transactions and raw iteration do not read the same: {looked_up:?} and {iterated:?}")
    });
    account.settle_reads(&mut consistency);
    Ok(consistency)
}

fn read_by_iteration<P: Protocol>(tables: &Tables<P>) -> Result<Books, Failure> {
    let mut books = Books::default();
    tables.users.for_each_quiescent(|row| books.user(row))?;
    tables.pages.for_each_quiescent(|row| books.page(row))?;
    tables.page_names.for_each_quiescent(|row| books.name(row))?;
    tables.revisions.for_each_quiescent(|row| books.revision(row))?;
    tables.texts.for_each_quiescent(|row| books.text(row))?;
    tables.parts.for_each_quiescent(|row| books.part(row))?;
    tables.recent_changes.for_each_quiescent(|row| books.change(row))?;
    tables.log.for_each_quiescent(|row| books.log_entry(row))?;
    tables.watches.for_each_quiescent(|row| books.watch(row))?;
    tables.watchers.for_each_quiescent(|row| books.watcher(row))?;
    Ok(books)
}

/// By the keys that the rows must have: what has another key is met by iteration only.
fn read_by_transactions<P: Protocol>(site: &Site<P>, session: &mut Session<P>) -> Result<Books, Abort> {
    let mut books = Books::default();
    let (tables, next) = (&site.tables, site.numbers.next());
    by_transactions(session, &tables.users, site.knobs.users + 1, |row| books.user(row))?;
    by_transactions(session, &tables.pages, site.knobs.pages + 1, |row| books.page(row))?;
    by_transactions(session, &tables.revisions, next.revision, |row| books.revision(row))?;
    by_transactions(session, &tables.recent_changes, next.recent_change, |row| books.change(row))?;
    by_transactions(session, &tables.log, next.log, |row| books.log_entry(row))?;
    let mut texts: Vec<(TextId, u32)> = Vec::new();
    by_transactions(session, &tables.texts, next.text, |row| {
        books.text(row);
        texts.push((row.id, row.len));
    })?;
    for (id, len) in texts {
        for number in 0..parts_of(len) {
            let part = session.run(|tx| tables.parts.get(tx, &(id, number), Whole))?;
            part.iter().for_each(|row| books.part(row));
        }
    }
    for user in 1..=site.knobs.users {
        let first = |user| WatchKey { user, page: PageName { namespace: i32::MIN, title: text("") } };
        let rows: Vec<Watch> = scanned(session, &tables.watches, first(user)..first(user + 1))?;
        rows.iter().for_each(|row| books.watch(row));
    }
    for name in &site.names {
        let page = session.run(|tx| tables.page_names.get(tx, name, Whole))?;
        page.iter().for_each(|row| books.name(row));
        for watched in [Some(*name), talk_about(name)].into_iter().flatten() {
            let rows: Vec<Watcher> = scanned(session, &tables.watchers, all_watchers(&watched))?;
            rows.iter().for_each(|row| books.watcher(row));
        }
    }
    Ok(books)
}

fn scanned<R: Record<Index = Ordered>, P: Protocol>(
    session: &mut Session<P>,
    table: &Table<R, P>,
    range: impl KeyRange<R::Key> + Clone,
) -> Result<Vec<R>, Abort> {
    session.run(|tx| table.scan(tx, range.clone(), Whole).map(|row| Ok(row?.1)).collect())
}
