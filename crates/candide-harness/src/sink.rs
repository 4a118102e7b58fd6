//! Files that results go to.

use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file to write at the end. It is opened before the run, since a path that cannot be written should not cost
/// a minute to be found out, and keeps its contents until then.
pub(crate) struct Sink {
    path: PathBuf,
    file: File,
}

impl Sink {
    pub(crate) fn open(path: &Path) -> Result<Sink, Failure> {
        let file = File::options().create(true).write(true).truncate(false).open(path);
        let file = file.map_err(|error| Failure::Usage(not_written(path, &error)))?;
        Ok(Sink { path: path.to_path_buf(), file })
    }

    /// Whether both are the same file.
    pub(crate) fn is_same(&self, other: &Sink) -> bool {
        let place = |sink: &Sink| sink.path.canonicalize().ok();
        place(self).is_some_and(|path| place(other) == Some(path))
    }

    /// Replaces the contents.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let path = self.path.clone();
        let mut file = self.emptied()?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
        written.map_err(|error| Failure::Run(not_written(&path, &error).into()))
    }

    /// Gives up the contents for those to come. Pipes and devices have none.
    pub(crate) fn emptied(self) -> Result<BufWriter<File>, Failure> {
        let Sink { path, file } = self;
        let emptied = file.metadata().and_then(|about| if about.is_file() { file.set_len(0) } else { Ok(()) });
        emptied.map_err(|error| Failure::Run(not_written(&path, &error).into()))?;
        Ok(BufWriter::new(file))
    }
}

fn not_written(path: &Path, error: &Error) -> String {
    format!("cannot write to {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_written_as_it_is() {
        assert!(Sink::open(Path::new("/dev/null")).unwrap().write("text").is_ok());
    }

    #[test]
    fn the_same_file_is_told_whatever_it_is_called() {
        let folder = std::env::temp_dir().join(format!("candide-sink-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let open = |name: &str| Sink::open(&folder.join(name)).unwrap();
        let (one, same, other) = (open("a"), open("./a"), open("b"));
        assert!(one.is_same(&same) && !one.is_same(&other));
        one.write("first, and longer").unwrap();
        same.write("second").unwrap();
        assert_eq!(std::fs::read_to_string(folder.join("a")).unwrap(), "second");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
