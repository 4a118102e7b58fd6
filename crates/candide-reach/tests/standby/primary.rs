//! A primary whose files are sent to a place after each piece of work.

use candide::{Database, Level, LogOptions, Mvcc, Occ, Position, Record, Table, Whole};
use candide_log::disk::Disk;
use candide_log::format::catalog::{Catalog, CatalogKind};
use candide_log::format::manifest::Manifest;
use candide_log::schema::TableSchema;
use candide_log::sum::{long_row_hash, table_sum};
use candide_log::tools::{Item, inspect};
use candide_log_testing::SimDisk;
use candide_reach::sim::SimPlace;
use candide_reach::{Block, Claim, Leader, Patience, Place};
use candide_reach::{Standby, StandbyError, StandbyOptions};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

#[derive(Record, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    #[key]
    pub id: u64,
    #[index]
    pub owner: u32,
    #[group(balance)]
    pub cents: i64,
}

/// A row with a text and bytes of any length.
#[derive(Record, Clone, Debug, PartialEq, Eq)]
pub struct Note {
    #[key]
    pub id: u64,
    pub title: String,
    pub times: u64,
    #[group(body)]
    pub body: Option<Vec<u8>>,
}

impl Note {
    pub fn new(id: u64, seed: u64) -> Note {
        let length = [0, 3, 7, 8, 200, 9_000][(id / 2 + seed) as usize % 6];
        let title = (0..length).map(|place| char::from(b'a' + ((place + seed) % 26) as u8));
        let body = (!seed.is_multiple_of(3)).then(|| vec![seed as u8; (length / 2) as usize]);
        Note { id, title: title.collect(), times: 0, body }
    }
}

pub const PATIENCE: Patience =
    Patience { calls: 5, pause: Duration::ZERO, pause_max: Duration::ZERO };
pub const LONG: Duration = Duration::from_secs(120);

/// A primary, and the leader that sends its log. Each piece of work is an opening of its own, with
/// a claim of its own.
pub struct Primary {
    place: Arc<dyn Place>,
    disk: SimDisk,
    pub leader: Option<Leader>,
    numbers: Vec<u64>,
    /// The blocks that have been sent: their generation and place in the log.
    sent: (u64, u64),
    /// The stamp generation and the cut that have been sent.
    pub state: (u64, u64),
    /// Whether all records are sent below a cut of zero, and the cut is kept back.
    pub keeps_cut: bool,
}

/// Lets standbys fall back to snapshots, since what they need is gone, and others begin with them.
/// Checks each when it has what the primary has.
pub fn fall_back(place: &Arc<dyn Place>, check: impl Fn(&Standby, &Primary)) {
    let mut primary = Primary::new(Arc::clone(place));
    let behind = SimDisk::new();
    let position = primary.change(0);
    let standby = follow(place, &behind).unwrap();
    standby.wait_for(position, LONG).unwrap();
    drop(standby);
    for seed in 1..4 {
        primary.change(seed);
        // What was there before is deleted.
        primary.snapshot();
        let position = primary.change(seed + 10);
        for disk in [&SimDisk::new(), &behind] {
            let standby = follow(place, disk).unwrap();
            standby.wait_for(position, LONG).unwrap();
            check(&standby, &primary);
        }
    }
}

/// A block of the log: its generation, place and cut, and the words of its records.
type LogBlock = (u64, u64, u64, Vec<u64>);

impl Primary {
    pub fn new(place: Arc<dyn Place>) -> Primary {
        let (disk, numbers) = (SimDisk::new(), Vec::new());
        Primary {
            place,
            disk,
            leader: None,
            numbers,
            sent: (0, 0),
            state: (0, 0),
            keeps_cut: false,
        }
    }

    fn open(&self) -> Database<Occ> {
        let options = LogOptions::new().acknowledge(Level::Memory);
        Database::<Occ>::builder().open_on(Arc::new(self.disk.clone()), options).unwrap()
    }

    fn files(&self) -> (Manifest, Vec<LogBlock>) {
        let (mut found, mut blocks): (_, Vec<LogBlock>) = (None, Vec::new());
        inspect(&self.disk, &mut |item| {
            match item {
                Item::Manifest(manifest) => found = Some(manifest.clone()),
                Item::Block { header, .. } => {
                    blocks.push((header.generation, header.sequence, header.cut, Vec::new()));
                }
                Item::Record { record, .. } => {
                    if let Some((.., words)) = blocks.last_mut() {
                        words.extend_from_slice(record.words());
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        (found.unwrap(), blocks)
    }

    /// Does a piece of work, and sends its log. Returns where a reader has all of it.
    pub fn work(&mut self, work: impl FnOnce(&Database<Occ>)) -> Position {
        let db = self.open();
        work(&db);
        db.close().unwrap();
        let (manifest, blocks) = self.files();
        let number = self.numbers.len() as u64 + 1;
        let claim = Claim {
            database: manifest.uuid,
            number,
            earlier: &self.numbers,
            against_others: false,
            position: None,
            patience: PATIENCE,
        };
        let leader = Leader::claim(Arc::clone(&self.place), &claim, &mut ()).unwrap();
        self.numbers.push(number);
        let mut is_first = true;
        for (generation, sequence, cut, words) in blocks {
            if (generation, sequence) <= self.sent {
                continue;
            }
            self.sent = (generation, sequence);
            let kind = CatalogKind::Whole { own: generation, behind: self.state, is_anew: true };
            let whole = Catalog { kind, tables: manifest.tables.clone() };
            let catalog = if is_first { whole.encode().unwrap() } else { Vec::new() };
            let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let now = if self.keeps_cut { 0 } else { cut };
            let block = Block {
                cut: now,
                stamp_generation: generation,
                catalog: &catalog,
                payload: &payload,
            };
            leader.send(&leader.offer(&block).unwrap()).unwrap();
            self.state = (generation, cut);
            is_first = false;
        }
        let (database, generation) = (manifest.uuid, leader.generation());
        let reached = Position { database, generation, stamp: self.state.1 };
        self.leader = Some(leader);
        reached
    }

    /// Sends the cut that was kept back.
    pub fn send_cut(&mut self) {
        let leader = self.leader.as_ref().unwrap();
        let (stamp_generation, cut) = self.state;
        let block = Block { cut, stamp_generation, ..Block::default() };
        leader.send(&leader.offer(&block).unwrap()).unwrap();
    }

    /// Changes accounts in a way that depends on `seed`.
    pub fn change(&mut self, seed: u64) -> Position {
        self.work(|db| {
            let accounts = db.table::<Account>("accounts").unwrap();
            for step in 0..200u64 {
                let id = (seed * 31 + step * 7) % 100;
                let (owner, cents) = (step as u32 % 5, (seed * step) as i64);
                db.run(|tx| match step % 4 {
                    0 => accounts.put(tx, Account { id, owner, cents }),
                    1 => accounts.delete_if_present(tx, id + 1).map(drop),
                    _ => accounts.update_if_present(tx, id, Account::CENTS.add(1)).map(drop),
                })
                .unwrap();
            }
            let notes = db.table::<Note>("notes").unwrap();
            for step in 0..60u64 {
                let id = (seed * 13 + step * 7) % 40;
                let Note { title, body, .. } = Note::new(id, seed + step + 1);
                db.run(|tx| match step % 5 {
                    0 | 1 => notes.put(tx, Note::new(id, seed + step)),
                    2 => notes.delete_if_present(tx, id + 1).map(drop),
                    3 => notes.update_if_present(tx, id, Note::TITLE.set(&title)).map(drop),
                    _ => {
                        let update = (Note::BODY.set(body.as_deref()), Note::TIMES.add(1));
                        notes.update_if_present(tx, id, update).map(drop)
                    }
                })
                .unwrap();
            }
        })
    }

    /// Makes a checkpoint, sends it as a snapshot behind the last block, and deletes what it
    /// covers.
    pub fn snapshot(&mut self) {
        self.snapshot_with(0);
    }

    /// As [`Primary::snapshot`], with a sum of all rows that is wrong by `wrong`.
    pub fn snapshot_with(&mut self, wrong: u64) {
        let db = self.open();
        db.checkpoint().unwrap();
        db.close().unwrap();
        let (manifest, _) = self.files();
        let leader = self.leader.as_ref().unwrap();
        let mut snapshot = leader.snapshot(leader.acknowledged()).unwrap();
        let checkpoint = manifest.checkpoint.as_ref().unwrap();
        for (place, part) in checkpoint.parts.iter().enumerate() {
            let name = format!("checkpoint-{:010}-{place:04}", checkpoint.number);
            let file = self.disk.open_to_read(&name).unwrap();
            let mut bytes = vec![0; part.bytes as usize];
            file.read_at(0, &mut bytes).unwrap();
            let kind = CatalogKind::Whole { own: self.state.0, behind: self.state, is_anew: false };
            let in_use = manifest.tables.iter().filter(|table| table.is_in_use());
            let tables: Vec<TableSchema> = in_use.cloned().collect();
            let catalog = Catalog { kind, tables }.encode().unwrap();
            let catalog = if place == 0 { &catalog[..] } else { &[] };
            snapshot.part(catalog, &bytes).unwrap();
        }
        let sum = self.sum(&manifest).wrapping_add(wrong);
        snapshot.finish(&sum.to_le_bytes()).unwrap();
        leader.clean(Duration::ZERO).unwrap();
    }

    /// Returns the sum of all rows of the checkpoint.
    fn sum(&self, manifest: &Manifest) -> u64 {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        inspect(&self.disk, &mut |item| {
            if let Item::Row { table, row, .. } = item {
                let sum = sums.entry(table).or_default();
                *sum = sum.wrapping_add(long_row_hash(row));
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        let tables = manifest.tables.iter().filter(|table| table.is_in_use());
        let sum_of = |table: &TableSchema| {
            table_sum(&table.name, sums.get(&table.number).copied().unwrap_or(0))
        };
        tables.fold(0, |sum, table| sum.wrapping_add(sum_of(table)))
    }

    /// Returns the notes by their keys.
    pub fn notes(&self) -> BTreeMap<u64, Note> {
        let db = self.open();
        let notes = db.table::<Note>("notes").unwrap();
        let read = |id| db.run(|tx| notes.get(tx, id, Whole)).unwrap();
        (0..100).filter_map(|id| read(id).map(|row| (id, row))).collect()
    }

    /// Returns the accounts by their keys.
    pub fn accounts(&self) -> BTreeMap<u64, Account> {
        let db = self.open();
        let accounts = db.table::<Account>("accounts").unwrap();
        let mut rows = BTreeMap::new();
        for id in 0..200 {
            if let Some(row) = db.run(|tx| accounts.get(tx, id, Whole)).unwrap() {
                rows.insert(id, row);
            }
        }
        rows
    }
}

/// Follows a place by a database on a disk.
pub fn follow(place: &Arc<dyn Place>, disk: &SimDisk) -> Result<Standby, StandbyError> {
    let options = StandbyOptions::new().patience(PATIENCE);
    let builder = Database::<Mvcc>::builder();
    let log = LogOptions::new().segment_bytes(64 << 10);
    let replica = builder.follow_on(Arc::new(disk.clone()), log).unwrap();
    Standby::of(Arc::clone(place), replica, options)
}

pub fn sim(seed: u64) -> Arc<dyn Place> {
    Arc::new(SimPlace::new(seed))
}

/// Returns the accounts of a standby in one view.
pub fn rows(db: &Database<Mvcc>, accounts: &Table<Account, Mvcc>) -> BTreeMap<u64, Account> {
    let read = |id| db.read_view(|tx| accounts.get(tx, id, Whole)).unwrap();
    (0..200).filter_map(|id| read(id).map(|row| (id, row))).collect()
}

/// Returns the notes of a standby in one view.
pub fn notes(db: &Database<Mvcc>, notes: &Table<Note, Mvcc>) -> BTreeMap<u64, Note> {
    let read = |id| db.read_view(|tx| notes.get(tx, id, Whole)).unwrap();
    (0..100).filter_map(|id| read(id).map(|row| (id, row))).collect()
}
