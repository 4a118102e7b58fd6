//! The files in a directory of a database.

use crate::disk::Disk;
use crate::error::OpenError;
use crate::names::{DIRECTORY, FileName};

/// The contents of a directory.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) names: Vec<FileName>,
    /// A file that is not a database's, if there is one.
    pub(crate) foreign: Option<String>,
}

impl Files {
    /// Lists the files of a directory.
    pub(crate) fn list(disk: &dyn Disk) -> Result<Files, OpenError> {
        let mut files = Files::default();
        let mut listed = disk.list().map_err(OpenError::io(DIRECTORY))?;
        listed.sort_unstable();
        for name in listed {
            match FileName::parse(&name) {
                Some(name) => files.names.push(name),
                // File systems make such files themselves.
                None if name.starts_with('.') || name == "lost+found" => {}
                None => files.foreign = files.foreign.or(Some(name)),
            }
        }
        Ok(files)
    }

    /// Returns the largest number of a segment; 0 if there is none.
    pub(crate) fn last_segment(&self) -> u64 {
        self.last(|name| match name {
            FileName::Segment(number) => Some(number),
            _ => None,
        })
    }

    /// Returns a segment or a part of a checkpoint, if there is one: only a database leaves such
    /// files.
    pub(crate) fn of_database(&self) -> Option<FileName> {
        let is_so = |name: &&FileName| matches!(name, FileName::Segment(_) | FileName::Part(..));
        self.names.iter().rfind(is_so).copied()
    }

    /// Removes the files with this property. A file that cannot be removed is removed next time.
    pub(super) fn remove(&self, disk: &dyn Disk, is_so: impl Fn(FileName) -> bool) {
        for name in self.names.iter().filter(|name| is_so(**name)) {
            let _ = disk.remove(&name.name());
        }
    }

    fn last(&self, number: impl Fn(FileName) -> Option<u64>) -> u64 {
        self.names.iter().filter_map(|name| number(*name)).max().unwrap_or(0)
    }
}
