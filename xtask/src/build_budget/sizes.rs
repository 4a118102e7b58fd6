//! The sizes of the built command, and its functions, as `size` and `nm` of binutils list them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The sections with instructions.
const CODE: [&str; 4] = [".text", ".init", ".fini", ".plt"];
/// The name that stands for the crate of functions whose names Rust has not mangled.
const NO_CRATE: &str = "(not Rust)";

/// The size of a command, and its functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    /// Bytes of all sections with instructions.
    pub(super) text: u64,
    pub(super) file: u64,
    /// The number of functions of each family: of each name without generic arguments.
    families: BTreeMap<String, u64>,
    /// The bytes of the functions of each crate.
    crates: BTreeMap<String, u64>,
}

impl Sizes {
    /// Reads the sizes of a command that has symbols.
    pub(super) fn read(path: &Path) -> Result<Sizes, String> {
        let file = fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let sections = printed("size", "--format=sysv", path)?;
        let functions = printed("nm", "--print-size", path)?;
        let sizes = Sizes::of(file.len(), &sections, &functions);
        if sizes.families.is_empty() {
            return Err(format!("{}: has no symbols; build it without `strip`", path.display()));
        }
        Ok(sizes)
    }

    /// Returns the sizes of a file of so many bytes, of which `size` and `nm` print this.
    pub(super) fn of(file: u64, sections: &str, symbols: &str) -> Sizes {
        let mut sizes = Sizes { file, ..Sizes::default() };
        for line in sections.lines() {
            let mut fields = line.split_whitespace();
            if fields.next().is_some_and(|name| CODE.contains(&name)) {
                sizes.text += fields.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
            }
        }
        // Functions that are alike may be the same instructions, of which one name counts.
        let mut functions = BTreeMap::new();
        for line in symbols.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [address, bytes, "t" | "T" | "w" | "W", symbol] = fields[..] else { continue };
            functions.entry(address).or_insert((bytes, symbol));
        }
        for (bytes, symbol) in functions.into_values() {
            let name = rustc_demangle::try_demangle(symbol).ok().map(|name| format!("{name:#}"));
            let of = name.as_deref().map_or(NO_CRATE, crate_of).to_string();
            *sizes.crates.entry(of).or_default() += u64::from_str_radix(bytes, 16).unwrap_or(0);
            *sizes.families.entry(family(name.as_deref().unwrap_or(symbol))).or_default() += 1;
        }
        sizes
    }

    /// Returns the number of all functions.
    pub(super) fn functions(&self) -> u64 {
        self.families.values().sum()
    }

    /// Returns the number of functions of a family.
    pub(super) fn copies(&self, family: &str) -> u64 {
        self.families.get(family).copied().unwrap_or(0)
    }

    /// Returns the crates with the bytes of their functions, the largest first.
    pub(super) fn crates(&self) -> Vec<(&str, u64)> {
        let mut crates: Vec<_> =
            self.crates.iter().map(|(of, bytes)| (of.as_str(), *bytes)).collect();
        crates.sort_by_key(|(_, bytes)| Reverse(*bytes));
        crates
    }
}

/// Returns the output of a program of binutils about a file.
fn printed(program: &str, option: &str, path: &Path) -> Result<String, String> {
    let output = Command::new(program).arg(option).arg(path).output();
    let output = output.map_err(|error| format!("{program}: {error}; install binutils"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_string());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a demangled name without generic arguments: of `<a::Table<R>>::get::<K>`, as of
/// `a::Table<R>::get`, `a::Table::get`.
fn family(name: &str) -> String {
    let (mut family, mut depth, mut before) = (String::new(), 0_u32, ' ');
    for c in name.strip_prefix('<').unwrap_or(name).chars() {
        match c {
            '<' => depth += 1,
            // The arrow of a function's type, which symbols may write with a point.
            '>' if matches!(before, '-' | '.') => {}
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => family.push(c),
            _ => {}
        }
        before = c;
    }
    family.replace("::::", "::").trim_end_matches("::").to_string()
}

/// Returns the first name of the first path in a demangled name. A method of a primitive type
/// belongs to `core`. The command and the library are both called `candide`, and count as one
/// crate.
fn crate_of(name: &str) -> &str {
    let beginning = name.split("::").next().unwrap_or(name);
    let segment = beginning.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
    segment.filter(|segment| !segment.is_empty()).unwrap_or("core")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;

    #[test]
    fn functions_are_counted_by_family_and_by_crate() {
        let sections = ".init  23  7\n.text  160  30\n.rodata  99  200\n";
        let symbols = "\
            0010 001e t _ZN7candide5epoch3pin17h0123456789abcdefE\n\
            0010 001e t _ZN7candide5epoch4same17h0123456789abcdefE\n\
            0040 0028 T _ZN7candide5epoch3pin17hfedcba9876543210E\n\
            0080 0050 t _ZN7candide4load17h0123456789abcdefE\n\
            0100 000a T memcpy\n\
            0110 0008 d _ZN7candide4DATA17h0123456789abcdefE\n\
            0120 T no_size\n";
        let sizes = Sizes::of(1000, sections, symbols);
        assert_eq!((sizes.text, sizes.file, sizes.functions()), (183, 1000, 4));
        let copies = ["candide::epoch::pin", "candide::epoch::same", "pin"];
        assert_eq!(copies.map(|family| sizes.copies(family)), [2, 0, 0]);
        assert_eq!(sizes.crates(), [("candide", 150), (NO_CRATE, 10)]);
    }

    #[test]
    fn a_generic_method_is_one_family_whatever_the_mangling() {
        let demangled = |symbol: &str| format!("{:#}", rustc_demangle::demangle(symbol));
        let of_legacy = "_ZN7candide5table18Table$LT$R$C$P$GT$9get_units17h0123456789abcdefE";
        assert_eq!(family(&demangled(of_legacy)), "candide::table::Table::get_units");
        // <candide::table::Table<u8, candide::Occ>>::get_units::<Vec<u8>>, with disambiguators.
        let of_v0 = "_RINvMNtCs1_7candide5tableINtB3_5TablehNtB5_3OccE9get_unitsINtB5_3VechEEB5_";
        assert_eq!(family(&demangled(of_v0)), "candide::table::Table::get_units");
        let nested = "core::drop_in_place<alloc::Vec<(fn(A) -> Option<B>, <C as D<E>>::F)>>";
        assert_eq!(family(nested), "core::drop_in_place");
        let closure = "candide::table::Table<R,C,P>::get_units::{{closure}}";
        assert_eq!(family(closure), "candide::table::Table::get_units::{{closure}}");
    }

    #[test]
    fn the_crate_of_a_symbol_is_that_of_its_first_path() {
        assert_eq!(crate_of("candide::table::Table::get"), "candide");
        assert_eq!(crate_of("<&candide::Set as core::fmt::Debug>::fmt"), "candide");
        assert_eq!(crate_of("<[u8]>::sort"), "core");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn symbols_of_the_test_executable_are_read() {
        let path = env::current_exe().expect("a program that runs");
        let sizes = Sizes::read(&path).expect("a program with symbols");
        let named = "build_budget::sizes::tests::symbols_of_the_test_executable_are_read";
        assert!(sizes.families.keys().any(|family| family.contains(named)));
        let in_functions: u64 = sizes.crates.values().sum();
        let text = sizes.text;
        assert!(in_functions <= text && text < 2 * in_functions, "{in_functions} of {text}");
    }

    #[test]
    fn an_unreadable_executable_is_refused_by_name() {
        let refused = |path: &Path| Sizes::read(path).expect_err("no command");
        let missing = refused(Path::new("/no/such/file"));
        assert!(missing.starts_with("/no/such/file: "), "{missing}");
        let text = refused(&crate::root().join("Cargo.toml"));
        assert!(text.contains("Cargo.toml"), "{text}");
    }
}
