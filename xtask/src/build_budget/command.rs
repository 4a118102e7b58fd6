//! The built command: its size and its functions, read from its file.

use super::names;
use object::{Object, ObjectSection, ObjectSymbol, ReadCache, SectionKind, SymbolKind};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::fs;
use std::path::Path;

/// The name that stands for the crate of functions whose names Rust has not mangled.
const NO_CRATE: &str = "(not Rust)";

/// A group of functions: their bytes, and their number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) bytes: u64,
    pub(super) copies: u64,
}

/// The size of a command, and its functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Bytes of all sections with instructions.
    pub(super) text: u64,
    pub(super) file: u64,
    pub(super) families: BTreeMap<String, Group>,
    pub(super) crates: BTreeMap<String, Group>,
}

impl Sizes {
    /// Reads a command's headers and symbols, but not its debug information.
    pub(super) fn read(path: &Path) -> Result<Sizes, String> {
        let explain = |problem: &dyn Display| format!("{}: {problem}", path.display());
        let file = fs::File::open(path).map_err(|error| explain(&error))?;
        let metadata = file.metadata().map_err(|error| explain(&error))?;
        if !metadata.is_file() {
            return Err(explain(&"is no file"));
        }
        let cache = ReadCache::new(file);
        let unread = |error| explain(&format!("is no ELF file that can be read: {error}"));
        let parsed = object::File::parse(&cache).map_err(unread)?;
        let code = parsed.sections().filter(|section| section.kind() == SectionKind::Text);
        let text = code.map(|section| section.size()).sum();
        let mut sizes = Sizes { text, file: metadata.len(), ..Sizes::default() };
        let mut functions = Functions::default();
        let is_function = |kind, size| kind == SymbolKind::Text && size > 0;
        for symbol in parsed.symbols().filter(|symbol| is_function(symbol.kind(), symbol.size())) {
            functions.add(symbol.address(), symbol.size(), symbol.name().map_err(unread)?);
        }
        if functions.0.is_empty() {
            return Err(explain(&"has no symbols of functions; build it without `strip`"));
        }
        functions.0.into_values().for_each(|(bytes, Reverse(name))| sizes.add(name, bytes));
        Ok(sizes)
    }

    /// Counts one function.
    fn add(&mut self, symbol: &str, bytes: u64) {
        let family = names::family(symbol);
        let of = family.as_deref().map_or(NO_CRATE, names::crate_of).to_string();
        let family = family.unwrap_or_else(|| symbol.to_string());
        let groups = [self.families.entry(family), self.crates.entry(of)];
        for group in groups.map(Entry::or_default) {
            group.bytes += bytes;
            group.copies += 1;
        }
    }

    pub(super) fn functions(&self) -> u64 {
        self.families.values().map(|family| family.copies).sum()
    }

    /// Returns the number of functions of a family.
    pub(super) fn copies(&self, family: &str) -> u64 {
        self.families.get(family).map_or(0, |family| family.copies)
    }
}

/// The functions by their addresses. Each has its number of bytes and its name. For functions that
/// are alike, the compiler may give several names to the same instructions. Only one of these names
/// counts.
#[derive(Debug, Default)]
struct Functions<'a>(BTreeMap<u64, (u64, Reverse<&'a str>)>);

impl<'a> Functions<'a> {
    fn add(&mut self, address: u64, bytes: u64, name: &'a str) {
        let function = (bytes, Reverse(name));
        let known = self.0.entry(address).or_insert(function);
        *known = function.max(*known);
    }
}

/// Returns the `count` groups that take the most bytes, the largest first.
pub(super) fn largest(groups: &BTreeMap<String, Group>, count: usize) -> Vec<(&str, Group)> {
    let mut groups: Vec<_> = groups.iter().map(|(name, group)| (name.as_str(), *group)).collect();
    groups.sort_by_key(|(_, group)| Reverse(group.bytes));
    groups.truncate(count);
    groups
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::env;

    /// Returns the sizes of a command that consists of only these functions.
    pub(in super::super) fn sizes_of(functions: &[(&str, u64)]) -> Sizes {
        let mut sizes = Sizes { file: 1000, ..Sizes::default() };
        for (symbol, bytes) in functions {
            sizes.text += bytes;
            sizes.add(symbol, *bytes);
        }
        sizes
    }

    #[test]
    fn copies_are_counted_by_family_and_by_crate() {
        let functions = [
            ("_ZN7candide5epoch3pin17h0123456789abcdefE", 30),
            ("_ZN7candide5epoch3pin17hfedcba9876543210E", 40),
            ("_ZN7candide4load17h0123456789abcdefE", 80),
            ("memcpy", 10),
        ];
        let sizes = sizes_of(&functions);
        assert_eq!((sizes.text, sizes.functions()), (160, 4));
        assert_eq!((sizes.copies("candide::epoch::pin"), sizes.copies("pin")), (2, 0));
        let load = ("candide::load", Group { bytes: 80, copies: 1 });
        assert_eq!(largest(&sizes.families, 1), [load]);
        let of_candide = ("candide", Group { bytes: 150, copies: 3 });
        let of_others = (NO_CRATE, Group { bytes: 10, copies: 1 });
        assert_eq!(largest(&sizes.crates, 10), [of_candide, of_others]);
    }

    #[test]
    fn instructions_with_several_names_count_once() {
        let mut functions = Functions::default();
        for (address, bytes, name) in [(16, 8, "c"), (16, 8, "b"), (16, 4, "a"), (32, 8, "c")] {
            functions.add(address, bytes, name);
        }
        let one_each = [(16, (8, Reverse("b"))), (32, (8, Reverse("c")))];
        assert_eq!(functions.0, BTreeMap::from(one_each));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_program_can_be_read() {
        let path = env::current_exe().expect("a program that runs");
        let sizes = Sizes::read(&path).expect("a program with symbols");
        let named = |name: &str| sizes.families.keys().any(|family| family.contains(name));
        assert!(named("build_budget::command::tests::this_program_can_be_read"));
        let in_functions: u64 = sizes.families.values().map(|family| family.bytes).sum();
        let text = sizes.text;
        assert!(in_functions <= text && text < 2 * in_functions, "{in_functions} of {text}");
        assert_eq!(sizes.file, fs::metadata(&path).expect("a file").len());
    }

    #[test]
    fn what_is_no_command_is_refused_by_name() {
        let refused = |path: &Path| Sizes::read(path).expect_err("no command");
        let missing = refused(Path::new("/no/such/file"));
        assert!(missing.starts_with("/no/such/file: "), "{missing}");
        assert!(refused(&crate::root()).ends_with(": is no file"));
        let text = refused(&crate::root().join("Cargo.toml"));
        assert!(text.contains("Cargo.toml: is no ELF file that can be read: "), "{text}");
    }
}
