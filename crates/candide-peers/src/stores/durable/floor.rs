//! The time of a plain write and sync on the disk, with which commits are compared.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::figures::{Latency, Sample};
use crate::stores::Failure;
use crate::stores::scratch::Scratch;

/// The number of bytes of a write.
const BLOCK: usize = 4096;

/// The number of blocks of the file. Writes go through them in a cycle.
const BLOCKS: u64 = 1024;

/// Writes single blocks to a file whose blocks have all been written before, and syncs after each
/// write, until the time has ended, at least once.
pub(crate) fn measure(directory: &Path, duration: Duration) -> Result<Sample, Failure> {
    let folder = Scratch::below(directory)?;
    let mut file = File::create_new(folder.path().join("floor"))?;
    let mut block = [1; BLOCK];
    for _ in 0..BLOCKS {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let mut latency = Latency::new();
    let mut writes = 0;
    let begun = Instant::now();
    loop {
        let first = Instant::now();
        block[0] = block[0].wrapping_add(1);
        file.seek(SeekFrom::Start(writes % BLOCKS * BLOCK as u64))?;
        file.write_all(&block)?;
        file.sync_data()?;
        latency.add(first.elapsed());
        writes += 1;
        let elapsed = begun.elapsed();
        if elapsed >= duration {
            let per_second = writes as f64 / elapsed.as_secs_f64();
            return Ok(Sample::new(per_second, 0, &latency));
        }
    }
}
