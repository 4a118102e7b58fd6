//! The versions of the peers' crates that are built in.

/// The lock file. The file is compiled into the program, so that it names the versions with which
/// the program was built.
const LOCK_FILE: &str = include_str!("../../Cargo.lock");

/// Returns the version of a crate according to the lock file; `None` if the lock file does not
/// contain the crate.
pub(crate) fn version_of(name: &str) -> Option<&'static str> {
    let mut lines = LOCK_FILE.lines();
    let name = format!("name = \"{name}\"");
    lines.find(|line| *line == name)?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::{LOCK_FILE, version_of};
    use crate::stores::peers;

    #[test]
    fn every_peer_has_one_version_in_the_lock_file() {
        for name in peers::all().iter().filter_map(|peer| peer.about().crate_name) {
            let version =
                version_of(name).unwrap_or_else(|| panic!("{name} is not in the lock file"));
            assert!(version.split('.').count() >= 3, "{name} {version}");
            assert_eq!(
                LOCK_FILE.matches(&format!("name = \"{name}\"\n")).count(),
                1,
                "{name} has several versions"
            );
        }
        assert_eq!(version_of("candide-peers"), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(version_of("no such crate"), None);
    }
}
