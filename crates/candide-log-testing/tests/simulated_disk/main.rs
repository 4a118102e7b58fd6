//! The simulated disk: the states that a crash leaves, faults, and whatever else a disk does.

#![forbid(unsafe_code)]

mod crashes;
mod examples;
mod faults;
mod oracle;
mod same_as_real;
mod script;

use candide_log::disk::Disk;
use std::collections::BTreeMap;

/// The bytes of each file, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Returns what is on a disk.
fn files(disk: &dyn Disk) -> Files {
    let mut files = Files::new();
    for name in disk.list().unwrap() {
        let file = disk.open(&name).unwrap();
        let mut bytes = vec![0xff; file.len().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        files.insert(name, bytes);
    }
    files
}
