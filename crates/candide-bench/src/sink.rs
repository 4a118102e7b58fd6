//! Files that results go to.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::failure::Failure;

/// A file to write at the end. It is opened before the run, since a path that cannot be written should not cost
/// a minute to be found out, and keeps its contents until then.
pub(crate) struct Sink {
    file: File,
}

impl Sink {
    pub(crate) fn open(path: &Path) -> Result<Sink, Failure> {
        let file = File::options().create(true).write(true).truncate(false).open(path);
        let explain = |error| Failure::Usage(format!("cannot write to {}: {error}", path.display()));
        Ok(Sink { file: file.map_err(explain)? })
    }

    /// Replaces the contents.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let mut file = self.emptied()?;
        Ok(file.write_all(text.as_bytes()).and_then(|()| file.flush())?)
    }

    /// Gives up the contents for those to come.
    pub(crate) fn emptied(self) -> Result<BufWriter<File>, Failure> {
        self.file.set_len(0)?;
        Ok(BufWriter::new(self.file))
    }
}
