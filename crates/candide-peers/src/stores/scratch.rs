//! Folders for stores that need files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The file system in memory on Linux.
#[cfg(any(feature = "fjall", feature = "lmdb", feature = "rocksdb"))]
const SHARED_MEMORY: &str = "/dev/shm";

/// An empty folder. The folder and its contents are removed on drop.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder, in memory if possible.
    #[cfg(any(feature = "fjall", feature = "lmdb", feature = "rocksdb"))]
    pub(super) fn in_memory() -> io::Result<Scratch> {
        let shared = Path::new(SHARED_MEMORY);
        let parent = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        Scratch::below(&parent)
    }

    /// Creates a folder in the folder `parent`.
    pub(super) fn below(parent: &Path) -> io::Result<Scratch> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("candide-stores-{}-{number}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Scratch(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is left behind. Such a folder does not affect the
        // measurement.
        let _ = fs::remove_dir_all(&self.0);
    }
}
