//! A file of the operating system, read and written at given offsets.

use super::handle::Handle;
use crate::disk::DiskFile;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

/// An open file of the operating system.
#[derive(Debug)]
pub(super) struct RealFile {
    file: File,
    /// The directory in which the file was opened.
    directory: Arc<Handle>,
}

impl RealFile {
    pub(super) fn new(file: File, directory: Arc<Handle>) -> Self {
        Self { file, directory }
    }
}

impl DiskFile for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<()> {
        fill(to, offset, |rest, offset| read_some(&self.file, offset, rest))
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        write_all(&mut slices, offset, |slices, offset| write_some(&self.file, offset, slices))
    }

    fn check(&self) -> io::Result<()> {
        self.directory.check_file(&self.file)
    }

    /// Syncs the data and the size, but not the times of access and modification.
    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.check()
    }
}

/// Fills `to` by calls of `read`, which may return fewer bytes than asked for, or be interrupted.
fn fill(
    mut to: &mut [u8],
    mut offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !to.is_empty() {
        match read(to, offset) {
            Ok(0) => {
                let message = format!("the file ends {} bytes before the end of a read", to.len());
                return Err(io::Error::new(ErrorKind::UnexpectedEof, message));
            }
            Ok(count) => {
                to = &mut to[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `slices` by calls of `write`, which may accept fewer bytes, or be interrupted.
fn write_all(
    mut slices: &mut [IoSlice<'_>],
    mut offset: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>,
) -> io::Result<()> {
    // Without this call, empty slices at the front would look like a write that makes no progress.
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match write(slices, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                IoSlice::advance_slices(&mut slices, count);
                offset += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(unix)]
fn read_some(file: &File, offset: u64, to: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, offset)
}

#[cfg(windows)]
fn read_some(file: &File, offset: u64, to: &mut [u8]) -> io::Result<usize> {
    match std::os::windows::fs::FileExt::seek_read(file, to, offset) {
        // A read that begins at the end of the file.
        Err(error) if error.raw_os_error() == Some(38) => Ok(0),
        result => result,
    }
}

/// Writes some of the bytes. Rustix passes no more slices on than the kernel accepts at once.
#[cfg(target_os = "linux")]
fn write_some(file: &File, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, slices, offset)?)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn write_some(file: &File, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::write_at(file, first(slices), offset)
}

#[cfg(windows)]
fn write_some(file: &File, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_write(file, first(slices), offset)
}

/// Returns the first slice that has bytes.
#[cfg(not(target_os = "linux"))]
fn first<'a>(slices: &'a [IoSlice<'_>]) -> &'a [u8] {
    slices.iter().find(|slice| !slice.is_empty()).map_or(&[], |slice| slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a function that is interrupted every other time, and that otherwise transfers one
    /// byte, two bytes, three bytes and so on, or as many as are left.
    fn reluctant() -> impl FnMut(usize) -> io::Result<usize> {
        let mut calls = 0;
        move |available| {
            calls += 1;
            if calls % 2 == 1 {
                return Err(ErrorKind::Interrupted.into());
            }
            Ok(available.min(calls / 2))
        }
    }

    #[test]
    fn short_and_interrupted_writes_go_on_where_they_stopped() {
        let mut written = vec![0; 20];
        let parts: [&[u8]; 5] = [b"", b"one", b"", b"two three", b"four"];
        let mut slices = parts.map(IoSlice::new);
        let mut transfer = reluctant();
        write_all(&mut slices, 3, |slices, offset| {
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let count = transfer(bytes.len())?;
            written[offset as usize..][..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        })
        .unwrap();
        assert_eq!(&written, b"\0\0\0onetwo threefour\0");
    }

    #[test]
    fn short_and_interrupted_reads_go_on_where_they_stopped() {
        let source = b"abcdefghijklmnop";
        let mut to = [0; 12];
        let mut transfer = reluctant();
        fill(&mut to, 2, |rest, offset| {
            let count = transfer(rest.len())?;
            rest[..count].copy_from_slice(&source[offset as usize..][..count]);
            Ok(count)
        })
        .unwrap();
        assert_eq!(&to, b"cdefghijklmn");
    }

    #[test]
    fn a_read_that_makes_no_progress_reports_the_end_of_the_file() {
        let error = fill(&mut [0; 4], 0, |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(error.to_string(), "the file ends 4 bytes before the end of a read");
    }

    #[test]
    fn a_write_that_makes_no_progress_is_an_error() {
        let mut slices = [IoSlice::new(b"words")];
        let error = write_all(&mut slices, 0, |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WriteZero);
    }
}
