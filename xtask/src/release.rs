//! The packages for the registry: their metadata, and builds of what they contain.
//!
//! The packages are made together and unpacked. Programs get only what is in them, so the checks
//! run there: all features, the documentation's examples, the oldest supported compiler, other
//! systems. A check whose tool cannot be had is left out, and the task says so.

use crate::workspace::target_folder;
use serde_json::Value;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The published crates, each behind those that it depends on.
const PUBLISHED: &[&str] =
    &["candide-log", "candide-check", "candide-derive", "candide", "candide-reach"];

/// Packages whose documentation has examples of a crate that depends on them, and that crate. A
/// package cannot depend on what comes behind it, so the dependency is added when it is unpacked.
const EXAMPLES_OF: &[(&str, &str)] = &[("candide-derive", "candide")];

const LICENCES: &[&str] = &["LICENSE-MIT", "LICENSE-APACHE"];

/// Features that need no C compiler.
const PORTABLE: &str =
    "candide/history,candide/tracing,candide/metrics,candide/histograms,candide/text";

/// Systems for which the packages are checked, without their C libraries.
const SYSTEMS: &[&str] =
    &["aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

/// Checks the packages. With `--metadata`, builds nothing.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let manifests = manifests(root)?;
    for manifest in &manifests {
        check_metadata(root, manifest)?;
    }
    println!("release: the metadata of {} packages is complete", manifests.len());
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--metadata"] => Ok(()),
        [] => build(root, &manifests),
        _ => Err("`release` takes nothing or --metadata".to_string()),
    }
}

/// Returns the manifests of the published crates, as cargo understands them.
fn manifests(root: &Path) -> Result<Vec<Value>, String> {
    let mut cargo = cargo();
    cargo.current_dir(root).args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = output(&mut cargo)?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let is_published = |package: &&Value| package["publish"].is_null();
    let published: Vec<&Value> = packages.iter().filter(is_published).collect();
    let named = |name: &&str| {
        let found = published.iter().find(|package| package["name"] == *name);
        found.map(|&package| package.clone()).ok_or_else(|| format!("{name} is not published"))
    };
    if let Some(other) =
        published.iter().find(|package| !PUBLISHED.iter().any(|name| package["name"] == *name))
    {
        return Err(format!("{} would be published: set `publish = false`", other["name"]));
    }
    PUBLISHED.iter().map(named).collect()
}

/// Checks that a package has all that its page on the registry shows, and the texts of its
/// licences.
fn check_metadata(root: &Path, manifest: &Value) -> Result<(), String> {
    let name = name_of(manifest);
    let missing = |what: &str| format!("{name}: Cargo.toml has no {what}");
    let has_text = |field: &str| manifest[field].as_str().is_some_and(|text| !text.is_empty());
    for field in ["description", "license", "readme", "rust_version"] {
        if !has_text(field) {
            return Err(missing(field));
        }
    }
    for (field, most) in [("keywords", 5), ("categories", 5)] {
        let count = manifest[field].as_array().map_or(0, Vec::len);
        if !(1..=most).contains(&count) {
            return Err(format!("{name}: {count} {field}, and the registry takes 1 to {most}"));
        }
    }
    let docs = &manifest["metadata"]["docs"]["rs"];
    if docs["features"].is_null() && docs["all-features"].is_null() {
        return Err(missing("features in [package.metadata.docs.rs]"));
    }
    let path = manifest["manifest_path"].as_str().ok_or_else(|| missing("path"))?;
    let folder = Path::new(path).parent().ok_or_else(|| missing("folder"))?;
    let read = |path: PathBuf| {
        fs::read(&path).map_err(|error| format!("{name}: {}: {error}", path.display()))
    };
    for licence in LICENCES {
        if read(folder.join(licence))? != read(root.join(licence))? {
            return Err(format!("{name}: {licence} differs from the workspace's"));
        }
    }
    read(folder.join(manifest["readme"].as_str().expect("it was looked at above")))?;
    // What a package is built with from the registry is what it is tested with here.
    for dependency in manifest["dependencies"].as_array().into_iter().flatten() {
        let is_own = PUBLISHED.iter().any(|own| dependency["name"] == *own);
        let version = manifest["version"].as_str().unwrap_or_default();
        if is_own && dependency["kind"] != "dev" && dependency["req"] != format!("^{version}") {
            let (other, wanted) = (&dependency["name"], &dependency["req"]);
            return Err(format!("{name}: it asks for {other} {wanted}, and that is {version}"));
        }
    }
    Ok(())
}

/// Makes the packages, unpacks them, and checks what they contain.
fn build(root: &Path, manifests: &[Value]) -> Result<(), String> {
    let names: Vec<String> =
        PUBLISHED.iter().flat_map(|name| ["-p".to_string(), name.to_string()]).collect();
    succeed(
        cargo().current_dir(root).args(["package", "--no-verify", "--allow-dirty"]).args(names),
    )?;
    let folder = root.join(target_folder()).join("release");
    let folder = folder.with_file_name("unpacked");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut members = Vec::new();
    for manifest in manifests {
        let version = manifest["version"].as_str().unwrap_or_default();
        let package = format!("{}-{version}", name_of(manifest));
        let archive = root.join(target_folder()).join("package").join(format!("{package}.crate"));
        let bytes = fs::metadata(&archive)
            .map_err(|error| format!("{}: {error}", archive.display()))?
            .len();
        println!("release: {package}.crate has {} KB", bytes / 1000);
        succeed(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
        members.push(package);
    }
    for (name, other) in EXAMPLES_OF {
        let folder_of = |name: &str| {
            let place = PUBLISHED.iter().position(|published| *published == name);
            &members[place.expect("it is published")]
        };
        let manifest = folder.join(folder_of(name)).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(|error| error.to_string())?;
        let more = format!("\n[dev-dependencies.{other}]\npath = \"../{}\"\n", folder_of(other));
        fs::write(&manifest, text + &more)
            .map_err(|error| format!("{}: {error}", manifest.display()))?;
    }
    let patches: String = manifests
        .iter()
        .zip(&members)
        .map(|(manifest, member)| format!("{} = {{ path = \"{member}\" }}\n", name_of(manifest)))
        .collect();
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n{patches}"
    );
    fs::write(folder.join("Cargo.toml"), workspace)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let unpacked = |program: &mut Command, arguments: &[&str]| {
        succeed(program.current_dir(&folder).args(arguments).env_remove("CARGO_TARGET_DIR"))
    };
    unpacked(&mut cargo(), &["check", "--all-features"])?;
    unpacked(&mut cargo(), &["test", "--doc"])?;
    unpacked(cargo().env("RUSTDOCFLAGS", "-D warnings"), &["doc", "--no-deps"])?;
    let oldest = manifests[0]["rust_version"].as_str().expect("it was looked at above");
    if can_have("the oldest compiler", &["toolchain", "install", oldest, "--profile", "minimal"]) {
        let mut old = rustup(&["run", oldest, "cargo"]);
        unpacked(&mut old, &["check", "--features", PORTABLE])?;
    }
    for system in SYSTEMS {
        if can_have(system, &["target", "add", system]) {
            unpacked(&mut cargo(), &["check", "--target", system, "--features", PORTABLE])?;
        }
    }
    let tags = output(Command::new("git").current_dir(root).args(["tag", "--list", "v*"]))?;
    match tags.lines().last() {
        None => println!("release: NOT COMPARED with an earlier version: there is no tag v*"),
        Some(tag) => with_tool(root, "semver-checks", &["--baseline-rev", tag])?,
    }
    with_tool(root, "deny", &["check", "licenses", "advisories", "bans"])?;
    println!("release: passed; docs/release.md says what is left to do by hand");
    Ok(())
}

/// Runs a command of cargo that is not part of cargo, if it is installed.
fn with_tool(root: &Path, tool: &str, arguments: &[&str]) -> Result<(), String> {
    let is_installed = cargo()
        .args([tool, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_installed {
        println!("release: NOT RUN: cargo {tool}, which `cargo install cargo-{tool}` installs");
        return Ok(());
    }
    succeed(cargo().current_dir(root).arg(tool).args(arguments))
}

/// Returns whether rustup has something, or can install it. Says what is left out if not.
fn can_have(what: &str, arguments: &[&str]) -> bool {
    let has = rustup(arguments).status().is_ok_and(|status| status.success());
    if !has {
        println!("release: NOT CHECKED: {what}, which rustup cannot install here");
    }
    has
}

fn rustup(arguments: &[&str]) -> Command {
    let mut rustup = Command::new("rustup");
    rustup.args(arguments).env_remove("RUSTUP_TOOLCHAIN");
    rustup
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn name_of(manifest: &Value) -> &str {
    manifest["name"].as_str().unwrap_or_default()
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{command:?} does not start: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{command:?}: {}", output.status)),
    }
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status =
        command.status().map_err(|error| format!("{command:?} does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    fn candide() -> Value {
        let mut manifests = manifests(&root()).expect("the workspace has manifests");
        let place = manifests.iter().position(|manifest| manifest["name"] == "candide");
        manifests.swap_remove(place.expect("candide is published"))
    }

    #[test]
    fn published_packages_are_complete() {
        for manifest in manifests(&root()).unwrap() {
            check_metadata(&root(), &manifest).unwrap();
        }
    }

    #[test]
    fn missing_metadata_is_named() {
        for (field, expected) in [
            ("description", "candide: Cargo.toml has no description"),
            ("readme", "candide: Cargo.toml has no readme"),
            ("keywords", "candide: 0 keywords, and the registry takes 1 to 5"),
            ("metadata", "candide: Cargo.toml has no features in [package.metadata.docs.rs]"),
        ] {
            let mut manifest = candide();
            manifest[field] = Value::Null;
            assert_eq!(check_metadata(&root(), &manifest), Err(expected.to_string()));
        }
    }

    #[test]
    fn another_version_of_a_crate_of_the_workspace_is_refused() {
        let mut manifest = candide();
        let dependencies = manifest["dependencies"].as_array_mut().unwrap();
        let log = dependencies.iter_mut().find(|other| other["name"] == "candide-log").unwrap();
        log["req"] = "^0.0.9".into();
        let error = check_metadata(&root(), &manifest).unwrap_err();
        assert!(error.contains("\"candide-log\" \"^0.0.9\", and that is"), "{error}");
    }
}
