//! The names of the files of a database, which are all in one directory.

/// The file that is locked while a database is open.
pub(crate) const LOCK: &str = "LOCK";
/// The file that names the other files needed.
pub(crate) const MANIFEST: &str = "MANIFEST";
/// A copy of `MANIFEST`, in case that is damaged.
pub(crate) const MANIFEST_COPY: &str = "MANIFEST.copy";
/// The next `MANIFEST`, until it takes the place of the last one.
pub(crate) const MANIFEST_NEW: &str = "MANIFEST.new";
/// The next `MANIFEST.copy`, until it takes the place of the last one.
pub(crate) const MANIFEST_COPY_NEW: &str = "MANIFEST.copy.new";
/// What a remote has noted.
pub(crate) const REMOTE: &str = "REMOTE";
/// The next `REMOTE`, until it takes the place of the last one.
pub(crate) const REMOTE_NEW: &str = "REMOTE.new";
/// How error messages name the directory itself.
pub(crate) const DIRECTORY: &str = ".";

/// The meaning of a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileName {
    Lock,
    Manifest,
    ManifestCopy,
    ManifestNew,
    ManifestCopyNew,
    Remote,
    RemoteNew,
    /// A segment of the log, by its number.
    Segment(u64),
    /// A file for a segment to come.
    Spare(u64),
    /// A part of a checkpoint, by the numbers of both.
    Part(u64, u32),
}

impl FileName {
    /// Returns the meaning of a name. `None` if no file of a database has such a name.
    pub(crate) fn parse(name: &str) -> Option<FileName> {
        let parsed = match name {
            LOCK => FileName::Lock,
            MANIFEST => FileName::Manifest,
            MANIFEST_COPY => FileName::ManifestCopy,
            MANIFEST_NEW => FileName::ManifestNew,
            MANIFEST_COPY_NEW => FileName::ManifestCopyNew,
            REMOTE => FileName::Remote,
            REMOTE_NEW => FileName::RemoteNew,
            _ => {
                let (kind, numbers) = name.split_once('-')?;
                match kind {
                    "log" => FileName::Segment(numbers.parse().ok()?),
                    "spare" => FileName::Spare(numbers.parse().ok()?),
                    "checkpoint" => {
                        let (checkpoint, part) = numbers.split_once('-')?;
                        FileName::Part(checkpoint.parse().ok()?, part.parse().ok()?)
                    }
                    _ => return None,
                }
            }
        };
        // Other ways to write the number are other names.
        (parsed.name() == name).then_some(parsed)
    }

    /// Returns the name.
    pub(crate) fn name(self) -> String {
        match self {
            FileName::Lock => LOCK.to_string(),
            FileName::Manifest => MANIFEST.to_string(),
            FileName::ManifestCopy => MANIFEST_COPY.to_string(),
            FileName::ManifestNew => MANIFEST_NEW.to_string(),
            FileName::ManifestCopyNew => MANIFEST_COPY_NEW.to_string(),
            FileName::Remote => REMOTE.to_string(),
            FileName::RemoteNew => REMOTE_NEW.to_string(),
            FileName::Segment(number) => segment(number),
            FileName::Spare(number) => spare(number),
            FileName::Part(checkpoint, number) => part(checkpoint, number),
        }
    }
}

/// Returns the name of a segment of the log.
pub(crate) fn segment(number: u64) -> String {
    format!("log-{number:010}")
}

/// Returns the name of a file for a segment to come.
pub(crate) fn spare(number: u64) -> String {
    format!("spare-{number:010}")
}

/// Returns the name of a part of a checkpoint.
pub(crate) fn part(checkpoint: u64, number: u32) -> String {
    format!("checkpoint-{checkpoint:010}-{number:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_parsed_as_they_are_written() {
        let names = [
            FileName::Lock,
            FileName::Manifest,
            FileName::ManifestCopy,
            FileName::ManifestNew,
            FileName::ManifestCopyNew,
            FileName::Remote,
            FileName::RemoteNew,
            FileName::Segment(7),
            FileName::Segment(12_345_678_901),
            FileName::Spare(0),
            FileName::Part(3, 12),
        ];
        for name in names {
            assert_eq!(FileName::parse(&name.name()), Some(name));
        }
        assert_eq!(segment(7), "log-0000000007");
        assert_eq!(part(3, 12), "checkpoint-0000000003-0012");
    }

    #[test]
    fn other_file_names_are_not_parsed() {
        let others = ["", "log", "log-", "log-7", "log-+000000007", "log-0000000007.old", "lost"];
        for other in others.into_iter().chain(["checkpoint-0000000003", "spare-000000000x"]) {
            assert_eq!(FileName::parse(other), None, "{other}");
        }
    }
}
