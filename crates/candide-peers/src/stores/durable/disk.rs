//! The file system that a measurement writes to.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Disk {
    /// The directory that was given.
    pub(crate) directory: PathBuf,
    /// The type of the file system, such as `ext4`; `None` if the system does not report it.
    pub(crate) file_system: Option<String>,
    /// The device or other source of the file system.
    pub(crate) device: Option<String>,
}

/// The types of file systems that keep files in memory only.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs"];

impl Disk {
    /// Returns the file system of an existing directory.
    pub(crate) fn of(directory: &Path) -> io::Result<Disk> {
        let directory = directory.canonicalize()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (file_system, device) = mount_of(&mounts, &directory).unzip();
        Ok(Disk { directory, file_system, device })
    }

    /// Returns whether files are known to be in memory only.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file_system.as_deref().is_some_and(|kind| IN_MEMORY.contains(&kind))
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.file_system.as_deref().unwrap_or("an unknown file system");
        let device = self.device.as_deref().unwrap_or("an unknown device");
        write!(f, "{}, {kind} on {device}", self.directory.display())
    }
}

/// Returns the type and the source of the file system at `path`, according to the contents of
/// `/proc/self/mountinfo`.
fn mount_of(mounts: &str, path: &Path) -> Option<(String, String)> {
    let mount = |line: &str| {
        let (head, tail) = line.split_once(" - ")?;
        let point = unescaped(head.split(' ').nth(4)?);
        let mut fields = tail.split(' ');
        let (kind, source) = (fields.next()?, fields.next()?);
        path.starts_with(&point).then(|| (point.len(), kind.to_string(), unescaped(source)))
    };
    // Of file systems that are mounted at the same place, the last one is on top.
    let deepest = mounts.lines().filter_map(mount).max_by_key(|&(length, ..)| length);
    deepest.map(|(_, kind, source)| (kind, source))
}

/// Returns a field of `/proc/self/mountinfo`, in which a blank is written as `\040`.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::mount_of;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /tmp rw,nosuid shared:2 - tmpfs tmpfs rw,size=1k
31 22 8:1 / /mnt/fast\\040disk rw master:3 shared:9 - xfs /dev/sda1 rw
32 31 8:2 / /mnt/fast\\040disk rw - btrfs /dev/sdb rw
not a mount
";

    #[test]
    fn the_deepest_mount_holds_the_path() {
        let of = |path| mount_of(MOUNTS, Path::new(path));
        let some = |kind: &str, source: &str| Some((kind.to_string(), source.to_string()));
        assert_eq!(of("/home/me"), some("ext4", "/dev/vda"));
        assert_eq!(of("/tmp/me"), some("tmpfs", "tmpfs"));
        assert_eq!(of("/tmpfiles"), some("ext4", "/dev/vda"));
        assert_eq!(of("/mnt/fast disk/me"), some("btrfs", "/dev/sdb"));
        assert_eq!(of("relative"), None);
        assert_eq!(mount_of("", Path::new("/home")), None);
    }
}
