//! One lock around a map and a file: what a program writes by hand to have durable commits.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{self, PoisonError};

use super::mutex::{Maps, Mutex, maps};
use crate::Role;
use crate::stores::durability::{Durable, Waiting};
use crate::stores::{
    Done, Failure, Place, Read, Reading, Session, Size, Stopped, Store, Write, Writing, once,
};

impl Durable for Mutex {
    const NAME: &'static str = "mutex";
    const CRATE: Option<&'static str> = None;
    const USE: &'static str = "std::sync::Mutex around HashMaps and a growing file: a transaction appends what it has written, \
                               and calls sync_data, before it releases the lock; cannot roll back";
    const ROLE: Role = Role::Yardstick;
    type Store = Logged;
    type Committer<'s> = Waiting<&'s Logged>;

    fn open(directory: &Path, size: Size) -> Result<Logged, Failure> {
        let options = OpenOptions::new().read(true).append(true).create(true).to_owned();
        let mut file = options.open(directory.join("rows"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut maps = maps(size);
        let whole = replay(&bytes, &mut maps);
        // The rest was not acknowledged. New records must not come behind it.
        file.set_len(whole as u64)?;
        Ok(Logged(sync::Mutex::new(Rows { maps, file, bytes: Vec::new() })))
    }

    fn committer(store: &Logged) -> Result<Waiting<&Logged>, Failure> {
        Ok(Waiting(store))
    }
}

/// The rows and their lock.
pub(crate) struct Logged(sync::Mutex<Rows>);

struct Rows {
    maps: Maps<i64>,
    file: File,
    /// The entries that the running transaction has written.
    bytes: Vec<u8>,
}

/// The number of bytes of an entry: a table, a key and a value.
const ENTRY: usize = 24;

/// The number of bytes in front of a record's entries: their number and their checksum.
const HEAD: usize = 16;

fn word(bytes: &[u8], index: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * index..][..8].try_into().expect("eight bytes"))
}

/// Returns the checksum of entries (FNV-1a).
fn checksum(entries: &[u8]) -> u64 {
    let step = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    entries.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Applies the records of a file. Returns the length of the records that are whole.
fn replay(bytes: &[u8], maps: &mut Maps<i64>) -> usize {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + HEAD) {
        let count = usize::try_from(word(head, 0)).unwrap_or(usize::MAX);
        let end = count.saturating_mul(ENTRY).saturating_add(at + HEAD);
        let Some(entries) = bytes.get(at + HEAD..end) else { break };
        if checksum(entries) != word(head, 1) {
            break;
        }
        for entry in entries.chunks_exact(ENTRY) {
            let map = &mut maps[word(entry, 0) as usize];
            map.insert(word(entry, 1), word(entry, 2) as i64);
        }
        at = end;
    }
    at
}

impl Rows {
    fn set(&mut self, Place { table, key }: Place, value: i64) {
        self.maps[table].insert(key, value);
        for word in [table as u64, key, value as u64] {
            self.bytes.extend(word.to_le_bytes());
        }
    }

    /// Makes what was written since the last call durable.
    fn commit(&mut self) -> Result<(), Failure> {
        let mut record = Vec::with_capacity(HEAD + self.bytes.len());
        record.extend(((self.bytes.len() / ENTRY) as u64).to_le_bytes());
        record.extend(checksum(&self.bytes).to_le_bytes());
        record.append(&mut self.bytes);
        self.file.write_all(&record)?;
        self.file.sync_data()?;
        Ok(())
    }
}

impl Store<i64> for Logged {
    type Session<'s> = &'s Logged;

    fn open(_: Size) -> Result<Logged, Failure> {
        Err("it needs a directory".into())
    }

    fn load(
        &mut self,
        table: usize,
        rows: impl Iterator<Item = (u64, i64)> + Send,
    ) -> Result<(), Failure> {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        rows.for_each(|(key, value)| all.set(Place { table, key }, value));
        all.commit()
    }

    fn session(&self) -> Result<&Logged, Failure> {
        Ok(self)
    }
}

impl Session<i64> for &Logged {
    fn read<W: Reading<i64>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        once(|| work.run(&mut *rows))
    }

    fn write<W: Writing<i64>>(&mut self, work: &W) -> Result<Done<W::Output>, Failure> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = once(|| work.run(&mut *rows))?;
        rows.commit()?;
        Ok(done)
    }
}

impl Read<i64> for Rows {
    fn get(&mut self, place: Place) -> Result<i64, Stopped> {
        Read::get(&mut self.maps, place)
    }
}

impl Write<i64> for Rows {
    fn put(&mut self, place: Place, value: i64) -> Result<(), Stopped> {
        self.set(place, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::scratch::Scratch;

    struct Put(i64);

    impl Writing<i64> for Put {
        type Output = ();

        fn places(&self) -> impl Iterator<Item = Place> {
            std::iter::once(Place { table: 0, key: 7 })
        }

        fn run<X: Write<i64>>(&self, tx: &mut X) -> Result<(), Stopped> {
            tx.put(Place { table: 0, key: 7 }, self.0)
        }
    }

    #[test]
    fn a_record_that_is_not_whole_is_dropped_and_later_ones_are_kept() {
        let folder = Scratch::below(&std::env::temp_dir()).unwrap();
        let size = Size { tables: 1, rows: 1 };
        let open = || <Mutex as Durable>::open(folder.path(), size).unwrap();
        let value = |store: &Logged| store.0.lock().unwrap().maps[0].get(&7).copied();
        (&open()).write(&Put(1)).unwrap();
        (&open()).write(&Put(2)).unwrap();
        let path = folder.path().join("rows");
        let length = std::fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 1).unwrap();
        let store = open();
        assert_eq!(value(&store), Some(1), "the second transaction is not whole");
        (&store).write(&Put(3)).unwrap();
        drop(store);
        assert_eq!(value(&open()), Some(3));
    }
}
