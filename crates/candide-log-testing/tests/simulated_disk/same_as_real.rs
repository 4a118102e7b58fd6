//! Whatever a program sees of the simulated disk is what it sees of the operating system's.

use super::files;
use candide_log::disk::{Disk, DiskFile, RealDisk};
use candide_log_testing::SimDisk;
use fastrand::Rng;
use std::env;
use std::fs;
use std::io;
use std::process;

/// The kind of an error, or what there is instead.
fn outcome<T>(result: io::Result<T>) -> Result<T, io::ErrorKind> {
    result.map_err(|error| error.kind())
}

/// Files that were opened on both disks.
type Handles = Vec<[Box<dyn DiskFile>; 2]>;

fn step(rng: &mut Rng, disks: [&dyn Disk; 2], handles: &mut Handles) {
    let names = ["a", "b", "c", "..", "d/e"];
    let (name, other) = (names[rng.usize(..names.len())], names[rng.usize(..names.len())]);
    let kind = rng.u8(..9);
    match kind {
        0 | 1 => {
            let opened = disks
                .map(|disk| outcome(if kind == 0 { disk.create(name) } else { disk.open(name) }));
            match opened {
                [Ok(one), Ok(two)] => handles.push([one, two]),
                opened => {
                    let [one, two] = opened.map(Result::err);
                    assert_eq!(one, two);
                }
            }
        }
        2 => {
            let [one, two] = disks.map(|disk| outcome(disk.rename(name, other)));
            assert_eq!(one, two);
        }
        3 => {
            let [one, two] = disks.map(|disk| outcome(disk.remove(name)));
            assert_eq!(one, two);
        }
        4 => {
            let [one, two] = disks.map(|disk| outcome(disk.sync_directory()));
            assert_eq!(one, two);
        }
        _ if handles.is_empty() => {}
        5 | 6 => {
            let bytes = vec![rng.u8(..3); rng.usize(..6000)];
            let (offset, middle) = (rng.u64(..10_000), rng.usize(..=bytes.len()));
            for file in &handles[rng.usize(..handles.len())] {
                file.write_at(offset, &[&bytes[..middle], &bytes[middle..]]).unwrap();
            }
        }
        7 => {
            let (offset, length) = (rng.u64(..12_000), rng.usize(..6000));
            let [one, two] = handles[rng.usize(..handles.len())].each_ref().map(|file| {
                let mut bytes = vec![9; length];
                let result = outcome(file.read_at(offset, &mut bytes));
                result.map(|()| (bytes, file.len().unwrap()))
            });
            assert_eq!(one, two);
        }
        _ => {
            // A file that was removed meanwhile is not made durable.
            let file = &handles[rng.usize(..handles.len())];
            let [one, two] = file.each_ref().map(|file| outcome(file.sync()));
            assert_eq!(one, two);
            let [one, two] = file.each_ref().map(|file| outcome(file.check()));
            assert_eq!(one, two);
        }
    }
}

#[test]
fn the_simulated_disk_answers_like_the_real_one() {
    for seed in 0..40 {
        let path = env::temp_dir().join(format!("candide-log-{}-same-{seed}", process::id()));
        _ = fs::remove_dir_all(&path);
        let (real, simulated) = (RealDisk::create(&path).unwrap(), SimDisk::new());
        let (mut rng, mut handles) = (Rng::with_seed(seed), Vec::new());
        for _ in 0..60 {
            step(&mut rng, [&real, &simulated], &mut handles);
        }
        assert_eq!(files(&real), files(&simulated), "{seed}");
        fs::remove_dir_all(&path).unwrap();
    }
}
