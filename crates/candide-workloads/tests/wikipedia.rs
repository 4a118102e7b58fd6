//! Wikipedia: pages, revisions, texts and lists agree after honest runs, and damage has a name.

mod common;

use candide::{Abort, Bytes, Database, GlobalLock, Mvcc, Occ, Protocol, Serial, Text, TicToc, Tx};
use candide_workloads::wikipedia::{
    Article, Page, PageName, RecentChange, Revision, Tables, User, Watch, WatchKey, Watcher, WatcherKey, Wikipedia,
    WikipediaTables,
};
use candide_workloads::{Loaded, Worker, Workload};
use common::{assert_failed, check, database, load, run, run_unaccounted};

/// More than this machine has cores, so that threads are interrupted within transactions.
const THREADS: usize = 5;
const STEPS: usize = 120;

/// Few pages, so that threads meet; more edits and changes of what is watched than in the published mix.
fn knobs() -> Wikipedia {
    Wikipedia { users: 12, pages: 8, weights: [3, 2, 5, 3, 3, 1], transactions: 500, ..Wikipedia::strict() }
}

fn holds<P: Protocol>(threads: usize, knobs: &Wikipedia) {
    for (updates, splitting) in [(true, true), (true, false), (false, true), (false, false)] {
        let db = database::<P>(updates, splitting);
        let tables = load(&db, knobs, threads);
        for round in 0..2 {
            assert_eq!(run(&db, &tables, threads, STEPS), threads * STEPS, "nothing rolls back");
            let consistency = check(&db, &tables);
            let failed = Vec::<String>::new();
            assert_eq!(consistency.failed, failed, "{}, {updates}, {splitting}, round {round}", P::NAME);
        }
    }
}

#[test]
fn everything_agrees_under_occ() {
    holds::<Occ>(THREADS, &knobs());
}

#[test]
fn everything_agrees_under_tictoc() {
    holds::<TicToc>(THREADS, &knobs());
    holds::<Mvcc>(THREADS, &knobs());
}

#[test]
fn everything_agrees_one_after_another() {
    holds::<GlobalLock>(THREADS, &knobs());
    holds::<Serial>(1, &knobs());
}

#[test]
fn everything_agrees_as_published() {
    let published = Wikipedia { index_talk: false, hash_index: false, ..knobs() };
    assert!(published.differences().iter().any(|how| how.contains("for ever, as published")));
    let db = database::<Occ>(true, true);
    let tables = load(&db, &published, THREADS);
    run(&db, &tables, THREADS, STEPS);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
}

#[test]
fn every_type_is_reported_under_its_own_number() {
    for kind in 0..6 {
        let db = database::<Occ>(true, true);
        let mut weights = [0; 6];
        weights[kind] = 3;
        let tables = load(&db, &Wikipedia { weights, ..knobs() }, 1);
        let mut worker = tables.worker(db.session().expect("a session"), 0);
        for _ in 0..20 {
            assert_eq!(worker.step().expect("no surprises").kind, kind);
        }
    }
}

fn honest() -> (Database<Occ>, WikipediaTables<Occ>) {
    let db = database::<Occ>(true, true);
    let tables = load(&db, &knobs(), 1);
    run(&db, &tables, 1, STEPS);
    assert_eq!(check(&db, &tables).failed, Vec::<String>::new());
    (db, tables)
}

/// What the check says after `damage`.
fn assert_noticed(words: &str, damage: impl Fn(&Tables<Occ>, &Tx<'_, Occ>) -> Result<(), Abort>) {
    let (db, site) = honest();
    db.run(|tx| damage(site.tables(), tx)).expect("can be done");
    assert_failed(&check(&db, &site), words);
}

#[test]
fn commits_that_nobody_accounts_for_are_noticed() {
    let (db, tables) = honest();
    run_unaccounted(&db, &tables, 50);
    let consistency = check(&db, &tables);
    assert_failed(&consistency, "were loaded or committed");
    assert_failed(&consistency, "pages do not end in anybody's last edit");
}

fn title(text: &str) -> Text<160> {
    Text::new(text).expect("fits")
}

#[test]
fn damage_to_pages_and_texts_is_noticed_by_name() {
    assert_noticed("1 pages do not end in a revision of theirs", |tables, tx| {
        tables.pages.update(tx, &1, Page::LEN.add(1))
    });
    assert_noticed("1 pages do not end in anybody's last edit", |tables, tx| {
        // An edit of the page, but not the last one.
        let latest = tables.pages.read(tx, &1, Page::LATEST)?;
        let parent = tables.revisions.read(tx, &latest, Revision::PARENT)?;
        tables.pages.update(tx, &1, Page::LATEST.set(parent))
    });
    assert_noticed("1 pages are not found by their names", |tables, tx| {
        tables.pages.update(tx, &1, Page::TITLE.set(title("else")))
    });
}

#[test]
fn damage_to_lists_is_noticed_by_name() {
    let name = PageName { namespace: 0, title: title("nowhere") };
    assert_noticed("1 revisions have no text", |tables, tx| tables.revisions.update(tx, &1, Revision::PAGE.set(5)));
    assert_noticed("1 texts lack characters", |tables, tx| {
        let mut part = tables.parts.read(tx, &(1, 0), candide::Whole)?;
        part.bytes = Bytes::from_fn(|index| if index == 3 { 0 } else { part.bytes.as_bytes()[index] });
        tables.parts.put(tx, part)
    });
    assert_noticed("parts of texts are there", |tables, tx| tables.parts.delete(tx, &(1, 0)));
    assert_noticed("1 users have not as many revisions", |tables, tx| {
        tables.users.update(tx, &3, User::EDIT_COUNT.add(1))
    });
    assert_noticed("1 recent changes have no text", |tables, tx| {
        tables.recent_changes.update(tx, &1, RecentChange::NEW_LEN.add(1))
    });
    assert_noticed("edits are in one of recent changes and log only", |tables, tx| tables.log.delete(tx, &1));
    assert_noticed("1 watchers do not watch", |tables, tx| {
        tables.watchers.insert(tx, Watcher { key: WatcherKey { page: name, user: 1 } })
    });
    assert_noticed("1 watched pages lack their watcher", |tables, tx| {
        let notified = Bytes::new([b'0'; 14]);
        tables.watches.insert(tx, Watch { key: WatchKey { user: 1, page: name }, notified })
    });
    assert_noticed("watched pages are nobody's", |tables, tx| {
        let (watch, ()) = tables.watches.iter(tx, ()).next().expect("watched pages")?;
        tables.users.delete(tx, &watch.user)
    });
    assert_noticed("were entered and not struck", |tables, tx| {
        let (key, ()) = tables.watches.iter(tx, ()).next().expect("watched pages")?;
        tables.watches.delete(tx, &key)?;
        tables.watchers.delete(tx, &WatcherKey { page: key.page, user: key.user })
    });
    assert_noticed("do not read the same", |tables, tx| {
        let text = Article { id: 1_000_000, flags: Text::new("").expect("fits"), page: 1, len: 0 };
        tables.texts.insert(tx, text)
    });
}

#[test]
fn what_readers_find_misplaced_is_noticed() {
    let (db, site) = honest();
    let tables = site.tables();
    let damage = db.run(|tx| {
        (1..=8).try_for_each(|page| {
            let text = tables.pages.read(tx, &page, Page::LATEST)?;
            let text = tables.revisions.read(tx, &text, Revision::TEXT)?;
            tables.texts.update(tx, &text, Article::PAGE.set(page + 1))
        })
    });
    damage.unwrap_or_else(|abort: Abort| panic!("{abort}"));
    run(&db, &site, 1, STEPS);
    assert_failed(&check(&db, &site), "were read, at the time, that belong to another page");
}

/// All pages and users after some transactions on one thread.
fn outcome<P: Protocol>(updates: bool) -> (Vec<Page>, Vec<User>) {
    let db = database::<P>(updates, true);
    let site = load(&db, &knobs(), 1);
    run(&db, &site, 1, STEPS);
    let (mut pages, mut users) = (Vec::new(), Vec::new());
    site.tables().pages.for_each_quiescent(|row| pages.push(*row)).expect("nothing runs");
    site.tables().users.for_each_quiescent(|row| users.push(*row)).expect("nothing runs");
    pages.sort_unstable_by_key(|row| row.id);
    users.sort_unstable_by_key(|row| row.id);
    (pages, users)
}

#[test]
fn one_thread_leaves_the_same_state_under_every_protocol_and_switch() {
    let expected = outcome::<Serial>(true);
    for updates in [true, false] {
        assert!(outcome::<Serial>(updates) == expected);
        assert!(outcome::<Occ>(updates) == expected);
        assert!(outcome::<TicToc>(updates) == expected);
        assert!(outcome::<GlobalLock>(updates) == expected);
    }
}
