//! A check of the files of each crate as a graph. An arrow leads from a file to each file that
//! defines a name that the first file uses.
//!
//! A name is followed through re-exports to its definition. So the `mod.rs` of a folder, which
//! re-exports its parts, adds no arrows. In each folder, the folder's own file and its parts must
//! not depend on one another in a circle. At the root, arrows must lead from a higher layer to a
//! lower one. `lib.rs` or `main.rs` declares the layers in a comment that begins with [`LAYERS`].
//! Tests and models are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, Token, UseTree, Visibility};

/// The beginning of the comment that names a crate's modules in order. Each is a layer of its own.
const LAYERS: &str = "// Layers, lowest first: ";

/// The path of a module from the root: the names of the modules on the way.
type ModulePath = Vec<String>;

/// A module that is a file.
#[derive(Default)]
struct Module {
    /// The submodules that are files.
    children: BTreeSet<String>,
    /// The names that the module re-exports, and for each name the path that it stands for.
    reexports: BTreeMap<String, Vec<String>>,
    /// The paths of the modules from which this module re-exports all names.
    globs: Vec<Vec<String>>,
    /// The paths that the module's code uses, except re-exports of its own parts.
    named: BTreeSet<Vec<String>>,
}

/// The modules of a crate that are compiled without tests and models.
struct Crate {
    modules: BTreeMap<ModulePath, Module>,
    /// The modules of the root, lowest first.
    layers: Vec<String>,
}

/// An arrow from a file to another file, which defines a name that the first one uses.
type Arrow = (ModulePath, ModulePath);

/// Searches the crate in `folder` for circles and upward arrows. Returns an instruction for each of
/// them, and a line of counts; `None` if the crate consists of programs of one file each.
pub(crate) fn problems(root: &Path, folder: &str) -> Result<Option<(Vec<String>, String)>, String> {
    let source = root.join(folder).join("src");
    let files = ["lib.rs", "main.rs"].map(|name| source.join(name));
    let Some(file) = files.iter().find(|file| file.is_file()) else { return Ok(None) };
    let read = Crate::read(&source, file)?;
    let arrows = read.arrows();
    let (upward, circles) = (read.upward(&arrows), circles(&arrows));
    let counts = format!(
        "{folder}: {} files, {} arrows, {} of them upward, {} circles",
        read.modules.len(),
        arrows.len(),
        upward.len(),
        circles.len()
    );
    let problems = upward.into_iter().chain(circles).map(|problem| format!("{folder}: {problem}"));
    Ok(Some((problems.collect(), counts)))
}

/// Returns messages about the circles in each folder, between the folder's own file and its parts.
/// A part includes everything below it.
fn circles(arrows: &BTreeSet<Arrow>) -> Vec<String> {
    // For each folder, the arrows between its parts. Each has an arrow between files as an example.
    let mut folders: BTreeMap<&[String], BTreeMap<(&str, &str), &Arrow>> = BTreeMap::new();
    for arrow @ (from, to) in arrows {
        let common = from.iter().zip(to).take_while(|(from, to)| from == to).count();
        let parts = (part(from, common), part(to, common));
        folders.entry(&from[..common]).or_default().entry(parts).or_insert(arrow);
    }
    let mut found = Vec::new();
    for (folder, parts) in folders {
        let edges: BTreeSet<(&str, &str)> = parts.keys().copied().collect();
        for circle in strongly_connected(&edges) {
            let examples: Vec<String> = parts
                .iter()
                .filter(|((from, to), _)| circle.contains(from) && circle.contains(to))
                .map(|(_, (from, to))| format!("{} -> {}", show(from), show(to)))
                .collect();
            found.push(format!(
                "a circle in `{}` of {}: {}",
                if folder.is_empty() { "the root".to_string() } else { folder.join("/") },
                circle.into_iter().collect::<Vec<_>>().join(", "),
                examples.join("; ")
            ));
        }
    }
    found
}

/// Returns the part to which `module` belongs in its folder that is `depth` levels below the root.
fn part(module: &ModulePath, depth: usize) -> &str {
    module.get(depth).map_or("mod.rs", String::as_str)
}

/// Returns the sets of two or more parts in which every part reaches every other part.
fn strongly_connected<'a>(edges: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let reached = |start: &'a str| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![start]);
        while let Some(part) = left.pop() {
            let next = edges.iter().filter(|(from, _)| *from == part).map(|&(_, to)| to);
            left.extend(next.filter(|&to| seen.insert(to)));
        }
        seen
    };
    let parts: BTreeSet<&str> = edges.iter().flat_map(|&(from, to)| [from, to]).collect();
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        parts.iter().map(|&part| (part, reached(part))).collect();
    let mut found = BTreeSet::new();
    for part in &parts {
        let circle: BTreeSet<&str> =
            reach[part].iter().copied().filter(|other| reach[other].contains(part)).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn show(path: &ModulePath) -> String {
    if path.is_empty() { "the root".to_string() } else { path.join("/") }
}

impl Crate {
    /// Reads the files from the root `file` on, which lies in the folder `source`.
    fn read(source: &Path, file: &Path) -> Result<Crate, String> {
        let mut read = Crate { modules: BTreeMap::new(), layers: Vec::new() };
        read.read_module(source, Vec::new(), file)?;
        Ok(read)
    }

    /// Returns messages about the arrows between modules of the root that go up, and about the
    /// arrows from or to a module without a layer.
    fn upward(&self, arrows: &BTreeSet<Arrow>) -> BTreeSet<String> {
        let mut problems = BTreeSet::new();
        for (from, to) in arrows {
            let (Some(above), Some(below)) = (from.first(), to.first()) else {
                problems.insert(format!(
                    "{} depends on {}; only the root re-exports",
                    show(from),
                    show(to)
                ));
                continue;
            };
            let layer = |module: &String| self.layers.iter().position(|layer| layer == module);
            let (high, low) = (layer(above), layer(below));
            for (module, layer) in [(above, high), (below, low)] {
                if layer.is_none() && above != below {
                    problems.insert(format!(
                        "the module `{module}` has no layer; name it in \"{LAYERS}...\""
                    ));
                }
            }
            if high.is_some() && low.is_some() && high < low {
                let (from, to) = (show(from), show(to));
                problems.insert(format!("{from} uses {to}, which is in a higher layer"));
            }
        }
        problems
    }

    fn read_module(&mut self, source: &Path, path: ModulePath, file: &Path) -> Result<(), String> {
        let explain = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(|error| explain(&error))?;
        let module = read_text(&text).map_err(|error| explain(&error))?;
        if path.is_empty() {
            self.layers = layers(&text);
        }
        let folder = path.iter().fold(source.to_path_buf(), |folder, name| folder.join(name));
        for child in &module.children {
            let mut below = path.clone();
            below.push(child.clone());
            let flat = folder.join(format!("{child}.rs"));
            let own = folder.join(child).join("mod.rs");
            self.read_module(source, below, if flat.is_file() { &flat } else { &own })?;
        }
        self.modules.insert(path, module);
        Ok(())
    }

    fn arrows(&self) -> BTreeSet<Arrow> {
        let mut arrows = BTreeSet::new();
        for (from, module) in self.modules.iter().filter(|(path, _)| !path.is_empty()) {
            for named in &module.named {
                if let Some(to) = self.resolve(from, named, 0).filter(|to| to != from) {
                    arrows.insert((from.clone(), to));
                }
            }
        }
        arrows
    }

    /// Returns the module that defines the name with the path `named`, as used in the module
    /// `from`. Returns `None` if the path leads out of the crate.
    fn resolve(&self, from: &ModulePath, named: &[String], depth: usize) -> Option<ModulePath> {
        assert!(depth < 20, "re-exports of {} go round in a circle", named.join("::"));
        let (first, rest) = named.split_first()?;
        let (mut at, mut rest) = match first.as_str() {
            "crate" => (Vec::new(), rest),
            "self" => (from.clone(), rest),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), rest),
            name if self.modules[from].children.contains(name) => (from.clone(), named),
            _ => return None,
        };
        while let Some((name, below)) = rest.split_first() {
            let module = self.modules.get(&at)?;
            if name == "super" {
                at.pop();
            } else if module.children.contains(name) {
                at.push(name.clone());
            } else if let Some(target) = module.reexports.get(name) {
                return self.resolve(&at, target, depth + 1);
            } else {
                let globs = module.globs.iter().filter_map(|glob| {
                    let mut target = glob.clone();
                    target.push(name.clone());
                    self.resolve(&at, &target, depth + 1)
                });
                return globs.into_iter().next().or(Some(at.clone()));
            }
            rest = below;
        }
        Some(at)
    }
}

/// Returns the layers that a root declares. The comment continues to the first other line.
fn layers(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with(LAYERS));
    let lines = lines.map_while(|line| line.strip_prefix("// "));
    let named: Vec<&str> = lines.map(|line| line.split(": ").last().unwrap_or(line)).collect();
    let names = named.iter().flat_map(|line| line.split([',', ' ', '.']));
    names.filter(|name| !name.is_empty()).map(str::to_string).collect()
}

/// Reads the names that a file's text uses.
fn read_text(text: &str) -> syn::Result<Module> {
    let parsed = syn::parse_file(text)?;
    let mut reader = Reader { module: Module::default(), depth: 0 };
    reader.module.children = parsed.items.iter().filter_map(submodule).collect();
    reader.visit_file(&parsed);
    Ok(reader.module)
}

/// Returns the name of the submodule that `item` declares, if the submodule is a file of its own
/// and is compiled without tests and models; otherwise `None`.
fn submodule(item: &Item) -> Option<String> {
    match item {
        Item::Mod(ItemMod { attrs, content: None, ident, .. }) if is_compiled(attrs) => {
            Some(ident.to_string())
        }
        _ => None,
    }
}

/// Collects the names that one file uses.
struct Reader {
    module: Module,
    /// The number of enclosing modules within the file.
    depth: usize,
}

impl Reader {
    fn name(&mut self, mut path: Vec<String>) {
        // In a module within the file, the first `super` leads to the file's own module.
        for _ in 0..self.depth {
            match path.first().map(String::as_str) {
                Some("super") => _ = path.remove(0),
                _ => break,
            }
        }
        self.module.named.insert(path);
    }

    fn take_use(&mut self, tree: &UseTree, mut path: Vec<String>, is_reexport: bool) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.take_use(&part.tree, path, is_reexport);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.take_use(tree, path.clone(), is_reexport);
                }
            }
            UseTree::Glob(_) if is_reexport => self.module.globs.push(path),
            UseTree::Glob(_) => self.name(path),
            UseTree::Name(_) | UseTree::Rename(_) => {
                let (name, known_as) = match tree {
                    UseTree::Name(name) => (&name.ident, &name.ident),
                    UseTree::Rename(name) => (&name.ident, &name.rename),
                    _ => unreachable!("these two"),
                };
                if name != "self" {
                    path.push(name.to_string());
                }
                let is_of_own_part =
                    path.first().is_some_and(|first| self.module.children.contains(first));
                if is_reexport {
                    self.module.reexports.insert(known_as.to_string(), path.clone());
                }
                if !(is_reexport && is_of_own_part) {
                    self.name(path);
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).is_none_or(is_compiled) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_some() {
            self.depth += 1;
            visit::visit_item_mod(self, item);
            self.depth -= 1;
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_reexport = !matches!(item.vis, Visibility::Inherited) && self.depth == 0;
        self.take_use(&item.tree, Vec::new(), is_reexport);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 {
            self.name(names);
        }
        visit::visit_path(self, path);
    }
}

fn attributes(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return None,
    })
}

/// Returns whether an item with these attributes is compiled without tests and models.
fn is_compiled(attributes: &[Attribute]) -> bool {
    attributes.iter().all(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| holds(&condition))
        }
        _ => true,
    })
}

/// Returns whether a condition holds in a build with every feature and without tests and models.
fn holds(condition: &Meta) -> bool {
    match condition {
        Meta::Path(name) => {
            !["test", "doctest", "loom", "shuttle"].iter().any(|no| name.is_ident(no))
        }
        Meta::NameValue(_) => true,
        Meta::List(list) => {
            let parts = list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .unwrap_or_default();
            match list.path.get_ident().map(ToString::to_string).as_deref() {
                Some("not") => !parts.iter().all(holds),
                Some("any") => parts.iter().any(holds),
                _ => parts.iter().all(holds),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a crate of files with these paths and texts.
    fn of(files: &[(&str, &str)]) -> Crate {
        let mut read = Crate { modules: BTreeMap::new(), layers: layers(files[0].1) };
        for (path, text) in files {
            let path = path.split('/').filter(|name| !name.is_empty()).map(str::to_string);
            let module = read_text(text).expect("the text is Rust");
            read.modules.insert(path.collect(), module);
        }
        read
    }

    fn shown(arrows: &BTreeSet<Arrow>) -> Vec<String> {
        arrows.iter().map(|(from, to)| format!("{} -> {}", show(from), show(to))).collect()
    }

    #[test]
    fn uses_are_resolved_through_reexports() {
        let arrows = of(&[
            ("", "mod record; mod txn; pub use txn::Tx;"),
            ("record", "mod tid; pub use tid::Tid; pub(crate) mod undo;"),
            ("record/tid", "pub struct Tid;"),
            ("record/undo", "use super::Tid; fn f(_: Tid) {}"),
            ("txn", "use crate::record::{undo::f, Tid as T}; fn g(_: crate::record::undo::U) {}"),
        ])
        .arrows();
        assert_eq!(
            shown(&arrows),
            ["record/undo -> record/tid", "txn -> record/tid", "txn -> record/undo"]
        );
    }

    #[test]
    fn uses_in_tests_and_models_are_no_arrows() {
        let arrows = of(&[
            ("", "mod a; mod b;"),
            (
                "a",
                "#[cfg(test)] use crate::b::B; #[cfg(all(test, not(loom)))] mod tests { use crate::b::B; }",
            ),
            ("b", "pub struct B; #[cfg(not(loom))] use crate::a::A; #[cfg(loom)] use crate::a::L;"),
        ])
        .arrows();
        assert_eq!(shown(&arrows), ["b -> a"]);
    }

    #[test]
    fn upward_arrows_between_layers_are_found() {
        let read = of(&[
            ("", "// Layers, lowest first: sync,\n// txn.\nmod sync; mod txn; mod novel;"),
            ("sync", "use crate::txn::Tx;"),
            ("txn", "use crate::sync::Lock; use crate::novel::Thing; use crate::Root;"),
            ("novel", ""),
        ]);
        assert_eq!(read.layers, ["sync", "txn"]);
        let problems: Vec<String> = read.upward(&read.arrows()).into_iter().collect();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(problems[0], "sync uses txn, which is in a higher layer");
        assert!(problems[1].starts_with("the module `novel` has no layer"), "{problems:?}");
        assert!(problems[2].starts_with("txn depends on the root"), "{problems:?}");
    }

    #[test]
    fn circles_are_found_between_parts_of_each_folder() {
        let arrows = of(&[
            ("", "mod a;"),
            ("a", "mod x; mod y; mod z; pub use x::X; fn own() {}"),
            ("a/x", "use super::y::below::Y; pub struct X;"),
            ("a/y", "pub mod below;"),
            ("a/y/below", "use crate::a::X; pub struct Y;"),
            ("a/z", "use super::{X, own};"),
        ])
        .arrows();
        let problems = circles(&arrows);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("a circle in `a` of x, y:"), "{problems:?}");
    }
}
