//! The workspace's folder, and the files in it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the workspace's folder.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("this package is a folder of the workspace").to_path_buf()
}

/// Collects the source files below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    collect_ending("rs", folder, files)
}

/// Collects the files below a folder whose names have this extension.
pub(crate) fn collect_ending(
    ending: &str,
    folder: &Path,
    files: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // The output of a build, if its folder is within the crate.
        if path.is_dir() && path.ends_with("target") {
            continue;
        }
        if path.is_dir() {
            collect_ending(ending, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == ending) {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the folder of cargo's builds, relative to the workspace's folder.
pub(crate) fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}
