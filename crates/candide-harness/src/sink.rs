//! Files to which results are written.

use std::fs::{self, File};
use std::io::{self, BufWriter, Error, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file that is written at the end of a run. Since a run may take minutes, opening the sink
/// checks before the run that the file can be written. Until the end, an existing file keeps its
/// contents, and a new file is not created. So no empty file is left, however the run ends.
pub(crate) struct Sink {
    path: PathBuf,
    /// The canonical form of `path`.
    place: Option<PathBuf>,
    /// The open file; `None` if the file did not exist before the run.
    file: Option<File>,
}

impl Sink {
    /// Opens the file at `path`. If there is none, checks that it can be created.
    pub(crate) fn open(path: &Path) -> Result<Sink, Failure> {
        let is_there = path.exists();
        let not_written = |error| Failure::Usage(not_written(path, &error));
        let file = opened(path).map_err(not_written)?;
        let place = path.canonicalize().ok();
        if !is_there && let Some(place) = &place {
            fs::remove_file(place).map_err(not_written)?;
        }
        Ok(Sink { path: path.to_path_buf(), place, file: is_there.then_some(file) })
    }

    /// Returns whether both sinks are the same file.
    pub(crate) fn is_same(&self, other: &Sink) -> bool {
        self.place.is_some() && self.place == other.place
    }

    /// Replaces the contents of the file by `text`.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let path = self.path.clone();
        let mut file = self.emptied()?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
        written.map_err(|error| Failure::Run(not_written(&path, &error).into()))
    }

    /// Empties the file, and returns it for writing. Pipes and devices have no contents to remove.
    pub(crate) fn emptied(self) -> Result<BufWriter<File>, Failure> {
        let Sink { path, file, .. } = self;
        let emptied = file.map_or_else(|| opened(&path), Ok).and_then(|file| {
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            Ok(BufWriter::new(file))
        });
        emptied.map_err(|error| Failure::Run(not_written(&path, &error).into()))
    }
}

/// Opens a file for writing, and creates it if there is none.
fn opened(path: &Path) -> io::Result<File> {
    File::options().create(true).write(true).truncate(false).open(path)
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

    #[test]
    fn what_is_not_written_is_not_there() {
        let folder = std::env::temp_dir().join(format!("candide-unwritten-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a");
        let sink = Sink::open(&path).unwrap();
        assert!(!path.exists(), "before anything is written");
        sink.write("text").unwrap();
        drop(Sink::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text", "what was there is kept");
        #[cfg(unix)]
        {
            let (link, target) = (folder.join("link"), folder.join("target"));
            std::os::unix::fs::symlink(&target, &link).unwrap();
            let sink = Sink::open(&link).unwrap();
            assert!(!target.exists() && link.is_symlink(), "the link is kept");
            sink.write("text").unwrap();
            assert!(target.exists() && link.is_symlink());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
