//! Files to which results are written. The name `-` stands for standard output.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::IS_TAKEN;
use crate::failure::Failure;

/// The name that stands for standard output, and for standard input where a file is read.
pub(crate) const STANDARD: &str = "-";

/// A file that is written at the end of a run, or standard output. Since a run may take minutes,
/// opening the sink checks before the run that the file can be written. Until the end, an existing
/// file keeps its contents, and a new file is not created. So no empty file is left, however the
/// run ends.
pub(crate) struct Sink {
    path: PathBuf,
    /// The open file; `None` if the file did not exist before the run, and for standard output.
    file: Option<File>,
}

/// The identity of a file, which distinguishes it from others.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    /// The numbers of the file system and of the file, which all names of a file share.
    #[cfg(unix)]
    Numbers(u64, u64),
    /// The canonical form of the path. A file that did not exist has this name only.
    Name(PathBuf),
    /// Standard output, by the name `-`.
    Output,
}

impl Sink {
    /// Opens the file at `path`. If there is none, checks that it can be created. Returns, too, the
    /// identity of the file; `None` if other results may be written there as well: to a pipe or a
    /// device.
    fn open(path: &Path) -> Result<(Sink, Option<Identity>), Failure> {
        if path == Path::new(STANDARD) {
            return Ok((Sink { path: path.to_path_buf(), file: None }, Some(Identity::Output)));
        }
        let not_written = |error| Failure::Usage(not_written(path, &error));
        let is_there = path.exists();
        let file = opened(path).map_err(not_written)?;
        // A pipe may be there and have no canonical form.
        let place = path.canonicalize();
        let about = file.metadata().map_err(not_written)?;
        let numbers = numbers(&about).filter(|_| is_there);
        let identity = match about.is_file() {
            true => numbers.or_else(|| place.as_ref().ok().cloned().map(Identity::Name)),
            false => None,
        };
        if !is_there {
            place.and_then(fs::remove_file).map_err(not_written)?;
        }
        let file = is_there.then_some(file);
        Ok((Sink { path: path.to_path_buf(), file }, identity))
    }

    /// Opens the files of the options that are given, each by its name. If one of them is standard
    /// output, all that is printed goes to standard error from now on.
    ///
    /// # Errors
    /// [`Failure::Usage`]: a file cannot be written, or two options name the same file, or one
    /// names the file that standard output is written to.
    pub(crate) fn open_all<const N: usize>(
        options: [(&'static str, Option<&Path>); N],
    ) -> Result<[Option<Sink>; N], Failure> {
        let mut taken: Vec<(&str, Option<Identity>)> = vec![("standard output", of_output())];
        let mut sinks = [const { None }; N];
        for (sink, (option, path)) in sinks.iter_mut().zip(options) {
            let Some(path) = path else { continue };
            let (opened, identity) = Sink::open(path)?;
            let same =
                |(_, other): &&(&str, Option<Identity>)| identity.is_some() && *other == identity;
            if let Some((other, _)) = taken.iter().find(same) {
                return Err(Failure::Usage(format!(
                    "{other} and {option} name the same file; give each one of its own"
                )));
            }
            taken.push((option, identity));
            *sink = Some(opened);
        }
        if taken.iter().any(|(_, identity)| *identity == Some(Identity::Output)) {
            IS_TAKEN.store(true, Ordering::Relaxed);
        }
        Ok(sinks)
    }

    /// Replaces the contents of the file by `text`.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let path = self.path.clone();
        let mut file = self.emptied()?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
        written.map_err(|error| Failure::Run(not_written(&path, &error).into()))
    }

    /// Empties the file, and returns it for writing. Standard output, pipes and devices have no
    /// contents to remove.
    pub(crate) fn emptied(self) -> Result<Box<dyn Write>, Failure> {
        let Sink { path, file } = self;
        if path == Path::new(STANDARD) {
            return Ok(Box::new(BufWriter::new(Output)));
        }
        let emptied = file.map_or_else(|| opened(&path), Ok).and_then(|file| {
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            Ok(Box::new(BufWriter::new(file)) as Box<dyn Write>)
        });
        emptied.map_err(|error| Failure::Run(not_written(&path, &error).into()))
    }
}

/// Standard output. What follows after its reader has closed the pipe is dropped, as in
/// [`print`](super::print).
struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(io::stdout().flush(), ())
    }
}

/// Returns `written`, or `otherwise` if it is the error of a closed pipe.
fn unless_closed<T>(written: io::Result<T>, otherwise: T) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(otherwise),
        written => written,
    }
}

/// Returns the numbers of a file; `None` on systems whose files have none.
fn numbers(about: &Metadata) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some(Identity::Numbers(about.dev(), about.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = about;
        None
    }
}

/// Returns the identity of the file that standard output is written to; `None` if standard output
/// is no file, or the system does not report it.
fn of_output() -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let output = io::stdout().as_fd().try_clone_to_owned().ok()?;
        let about = File::from(output).metadata().ok()?;
        about.is_file().then(|| numbers(&about)).flatten()
    }
    #[cfg(not(unix))]
    None
}

/// Opens a file for writing, and creates it if there is none.
fn opened(path: &Path) -> io::Result<File> {
    File::options().create(true).write(true).truncate(false).open(path)
}

fn not_written(path: &Path, error: &Error) -> String {
    match path == Path::new(STANDARD) {
        true => format!("cannot print to standard output: {error}"),
        false => format!("cannot write to {}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_written_without_a_temporary_file() {
        assert!(Sink::open(Path::new("/dev/null")).unwrap().0.write("text").is_ok());
    }

    /// Two results in one file are refused under all names of the file, also before the file
    /// exists.
    #[test]
    fn two_outputs_to_one_file_are_refused_under_any_path() {
        let folder = std::env::temp_dir().join(format!("candide-sink-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("below")).unwrap();
        let path = |name: &str| folder.join(name);
        let both = |one: &str, other: &str| {
            let (one, other) = (path(one), path(other));
            Sink::open_all([
                ("--one", Some(one.as_path())),
                ("--none", None),
                ("--other", Some(other.as_path())),
            ])
        };
        let refused = |one: &str, other: &str| match both(one, other) {
            Err(Failure::Usage(message)) => {
                assert_eq!(
                    message,
                    "--one and --other name the same file; give each one of its own"
                );
            }
            _ => panic!("{one} and {other}"),
        };
        refused("new", "new");
        refused("new", "below/../new");
        assert!(!path("new").exists());
        fs::write(path("old"), "kept").unwrap();
        refused("old", "./below/../old");
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            fs::hard_link(path("old"), path("hard")).unwrap();
            symlink(path("old"), path("soft")).unwrap();
            symlink(path("new"), path("dangling")).unwrap();
            symlink(path("."), path("folder")).unwrap();
            for (one, other) in [
                ("old", "hard"),
                ("hard", "soft"),
                ("folder/old", "soft"),
                ("new", "dangling"),
                ("dangling", "folder/new"),
            ] {
                refused(one, other);
                refused(other, one);
            }
        }
        assert_eq!(fs::read_to_string(path("old")).unwrap(), "kept");
        let [one, none, other] = both("old", "new").unwrap();
        assert!(none.is_none());
        one.unwrap().write("first").unwrap();
        other.unwrap().write("second").unwrap();
        assert_eq!(fs::read_to_string(path("old")).unwrap(), "first");
        assert_eq!(fs::read_to_string(path("new")).unwrap(), "second");
        let null = Path::new("/dev/null");
        assert!(Sink::open_all([("--one", Some(null)), ("--other", Some(null))]).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn standard_output_is_taken_by_one_option_and_closed_pipes_are_no_errors() {
        let output = Path::new("-");
        let twice = Sink::open_all([("--one", Some(output)), ("--other", Some(output))]);
        let Err(Failure::Usage(message)) = twice else { panic!("both write to it") };
        assert_eq!(message, "--one and --other name the same file; give each one of its own");
        assert!(!IS_TAKEN.load(Ordering::Relaxed), "refused");
        assert!(!output.exists(), "no file has this name");
        let of = |kind: ErrorKind| unless_closed(Err(Error::from(kind)), 3);
        assert_eq!(of(ErrorKind::BrokenPipe).ok(), Some(3));
        assert!(of(ErrorKind::StorageFull).is_err());
    }

    #[test]
    fn a_sink_creates_its_file_at_the_first_write() {
        let folder = std::env::temp_dir().join(format!("candide-unwritten-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a");
        let (sink, _) = Sink::open(&path).unwrap();
        assert!(!path.exists(), "before anything is written");
        sink.write("text").unwrap();
        drop(Sink::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text", "what was there is kept");
        #[cfg(unix)]
        {
            let (link, target) = (folder.join("link"), folder.join("target"));
            std::os::unix::fs::symlink(&target, &link).unwrap();
            let (sink, _) = Sink::open(&link).unwrap();
            assert!(!target.exists() && link.is_symlink(), "the link is kept");
            sink.write("text").unwrap();
            assert!(target.exists() && link.is_symlink());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
