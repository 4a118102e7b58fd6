//! A copy of the workspace that contains all deliberate defects, below the target folder.
//!
//! The copy has the folders of the workspace, and is a workspace itself. A file is written only if
//! its content differs, so that cargo builds only what has changed. Files without defects keep the
//! time of their last change: cargo then uses what it has built of them in the same target folder.
//! The crates with defects have a feature of their own in the copy, `defects`, so that cargo
//! does not mistake one build for the other.

use crate::defects::{self, Defect};
use crate::workspace::target_folder;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates with defects.
const CRATES: [&str; 3] = ["crates/candide", "crates/candide-log", "crates/candide-reach"];

/// The changes of manifests: a feature that is there by default.
const MANIFESTS: [(&str, &str, &str); 3] = [
    (
        "crates/candide/Cargo.toml",
        "default = [\"derive\"]",
        "default = [\"derive\", \"defects\"]\ndefects = []",
    ),
    (
        "crates/candide-log/Cargo.toml",
        "[features]",
        "[features]\ndefault = [\"defects\"]\ndefects = []",
    ),
    (
        "crates/candide-reach/Cargo.toml",
        "default = [\"engine\"]",
        "default = [\"engine\", \"defects\"]\ndefects = []",
    ),
];

/// Writes the copy, and returns its folder.
pub(crate) fn write(root: &Path) -> Result<PathBuf, String> {
    let target = root.join(target_folder());
    // Tasks that run at the same time write the same files.
    let lock = fs::create_dir_all(&target).and_then(|()| fs::File::create(target.join("copying")));
    let _lock =
        lock.and_then(|file| file.lock().map(|()| file)).map_err(|error| error.to_string())?;
    let copy = target.join("instrumented");
    let defects = defects::all(root)?;
    let edited = defects::files(&defects);
    let files = listed(root)?;
    for file in &files {
        let source = root.join(file);
        let explain = |error| format!("{file}: {error}");
        let bytes = fs::read(&source).map_err(explain)?;
        let changed = changed(file, &bytes, edited.contains(file.as_str()), &defects)?;
        let bytes = changed.as_deref().map_or(&bytes[..], str::as_bytes);
        if put(&copy.join(file), bytes).map_err(explain)? && changed.is_none() {
            let time = source.metadata().and_then(|data| data.modified()).map_err(explain)?;
            let written = fs::File::options().append(true).open(copy.join(file));
            written.and_then(|written| written.set_modified(time)).map_err(explain)?;
        }
    }
    for folder in CRATES {
        let file = copy.join(folder).join("src/defects.rs");
        put(&file, module(&defects).as_bytes()).map_err(|error| error.to_string())?;
    }
    remove_others(&copy, &copy, &files).map_err(|error| format!("{}: {error}", copy.display()))?;
    Ok(copy)
}

/// Returns the paths of the files that git tracks or would track.
fn listed(root: &Path) -> Result<BTreeSet<String>, String> {
    let mut git = Command::new("git");
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().map_err(|error| format!("git does not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let files = text.split('\0').filter(|file| root.join(file).is_file());
    Ok(files.map(str::to_string).collect())
}

/// Returns the contents of a file in the copy; `None` if they are those in the workspace.
fn changed(
    file: &str,
    bytes: &[u8],
    is_edited: bool,
    defects: &[Defect],
) -> Result<Option<String>, String> {
    let manifest = MANIFESTS.iter().find(|(manifest, _, _)| *manifest == file);
    let is_root = CRATES.iter().any(|folder| file.strip_prefix(folder) == Some("/src/lib.rs"));
    if !is_edited && !is_root && manifest.is_none() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| format!("{file}: {error}"))?;
    if let Some((_, before, after)) = manifest {
        let found = text.matches(before).count();
        return match found {
            1 => Ok(Some(text.replace(before, after))),
            _ => Err(format!("{file}: `{before}` is there {found} times")),
        };
    }
    let text = defects::edit(file, text, defects).map_err(|problems| problems.join("\n"))?;
    Ok(Some(if is_root { format!("#![allow(warnings)] {text}\nmod defects;\n") } else { text }))
}

/// Writes a file unless it has that content already. Returns whether the file was written.
fn put(file: &Path, bytes: &[u8]) -> std::io::Result<bool> {
    if fs::read(file).is_ok_and(|content| content == bytes) {
        return Ok(false);
    }
    fs::create_dir_all(file.parent().expect("a file is in a folder"))?;
    fs::write(file, bytes)?;
    Ok(true)
}

/// Removes the files below a folder of the copy that are not in the workspace.
fn remove_others(copy: &Path, folder: &Path, files: &BTreeSet<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.strip_prefix(copy).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if path.is_dir() {
            remove_others(copy, &path, files)?;
        } else if !files.contains(&name) && !name.ends_with("/src/defects.rs") {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Returns the module of the copy with the active defect.
fn module(defects: &[Defect]) -> String {
    let names: Vec<&str> = defects.iter().map(|defect| defect.name.as_str()).collect();
    format!(
        "//! The choice of a deliberate defect, by the environment variable `CANDIDE_MUTANT`.

// These are not part of the state that the models explore.
use std::sync::OnceLock;
use std::sync::atomic::{{AtomicBool, Ordering}};

const NAMES: &[&str] = &{names:#?};

/// Returns whether the defect with this number is active.
#[inline]
pub(crate) fn defect(number: usize) -> bool {{
    static ACTIVE: OnceLock<usize> = OnceLock::new();
    let is_active = *ACTIVE.get_or_init(chosen) == number;
    if is_active {{
        tell();
    }}
    is_active
}}

fn chosen() -> usize {{
    let Ok(chosen) = std::env::var(\"CANDIDE_MUTANT\") else {{ return 0 }};
    let place = NAMES.iter().position(|name| *name == chosen);
    1 + place.unwrap_or_else(|| panic!(\"no defect is called {{chosen:?}}; there are {{NAMES:?}}\"))
}}

/// Says once that a place of the active defect has been reached.
fn tell() {{
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.load(Ordering::Relaxed) && !TOLD.swap(true, Ordering::Relaxed) {{
        eprintln!(\"mutant: met\");
    }}
}}
"
    )
}
