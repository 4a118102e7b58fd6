//! The file `REMOTE`: what a remote notes in the directory.

use crate::directory::Directory;
use crate::error::OpenError;
use crate::names::{REMOTE, REMOTE_NEW};
use std::io;
use std::sync::Arc;

/// The most bytes of a note that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Reads the note; `None` if there is none.
pub(super) fn read(disk: &Arc<Directory>) -> Result<Option<Vec<u8>>, OpenError> {
    let file = match disk.open_to_read(REMOTE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(OpenError::io(REMOTE))?,
    };
    let length = file.len().map_err(OpenError::io(REMOTE))?;
    if length > BYTES_MAX {
        let what = format!("the file has {length} bytes; {BYTES_MAX} are the most");
        return Err(OpenError::corrupt(REMOTE, BYTES_MAX, what));
    }
    let mut bytes = vec![0; length as usize];
    file.read_at(0, &mut bytes).map_err(OpenError::io(REMOTE))?;
    Ok(Some(bytes))
}

/// Writes the note, which is durable when this returns.
pub(super) fn write(disk: &Arc<Directory>, bytes: &[u8]) -> io::Result<()> {
    let file = disk.create(REMOTE_NEW)?;
    file.write_at(0, &[bytes])?;
    file.sync()?;
    // Some systems do not rename an open file.
    drop(file);
    disk.rename(REMOTE_NEW, REMOTE)?;
    disk.sync_names()
}
