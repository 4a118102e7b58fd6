//! Families of functions. A family is the name of its functions without the parts that differ
//! between copies.

/// Returns the family of a symbol: its demangled name without generic arguments, hash,
/// disambiguators of crates and numbers of closures. Returns `None` for a symbol that Rust has not
/// mangled.
pub(super) fn family(symbol: &str) -> Option<String> {
    // The alternate form (`#`) leaves out hashes and disambiguators.
    rustc_demangle::try_demangle(symbol).ok().map(|name| without_arguments(&format!("{name:#}")))
}

/// Returns the crate of a family: the first segment of the first path in it. A method of a
/// primitive type has no such segment and belongs to `core`. The command and the library are both
/// called `candide`, and count as one crate.
pub(super) fn crate_of(family: &str) -> &str {
    let beginning = family.split("::").next().unwrap_or(family);
    match beginning.rsplit(|c| !is_of_identifier(c)).next() {
        Some(segment) if !segment.is_empty() => segment,
        _ => "core",
    }
}

/// Copies a demangled name, or a type in one, without generic arguments and numbers of closures. If
/// `T` is a plain path, `<T>::f` becomes `T::f`. `<T as Trait>::f` is not changed.
fn without_arguments(name: &str) -> String {
    let (mut family, mut rest) = (String::new(), name);
    while let Some(next) = rest.chars().next() {
        match next {
            '<' => {
                let (inner, after) = inside(rest, '<', '>');
                let follows_path = family.ends_with("::") && !inner.starts_with("impl ");
                if follows_path {
                    family.truncate(family.len() - "::".len());
                }
                if !follows_path && !family.ends_with(ends_name) {
                    let inner = without_arguments(inner);
                    let is_path = inner.chars().all(|c| is_of_identifier(c) || ":{}".contains(c));
                    family += &if is_path { inner } else { format!("<{inner}>") };
                }
                rest = after;
            }
            '{' => {
                // The form is `{closure#1}`, with two braces on each side in symbols of the legacy
                // mangling.
                let (inner, after) = inside(rest, '{', '}');
                let kind = inner.trim_matches(['{', '}']).split('#').next().unwrap_or_default();
                family += &format!("{{{kind}}}");
                rest = after;
            }
            _ => {
                family.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
    }
    family
}

/// Splits a text that begins with a bracket into the text within the brackets and the text after
/// them. If the closing bracket is missing, the whole rest counts as within the brackets.
fn inside(text: &str, open: char, close: char) -> (&str, &str) {
    let (mut depth, mut before) = (0, ' ');
    for (place, c) in text.char_indices() {
        // An arrow contains no bracket. The legacy mangling writes an arrow with a point.
        let is_arrow = c == '>' && (before == '-' || before == '.');
        if c == open {
            depth += 1;
        } else if c == close && !is_arrow {
            depth -= 1;
            if depth == 0 {
                return (&text[open.len_utf8()..place], &text[place + close.len_utf8()..]);
            }
        }
        before = c;
    }
    (&text[open.len_utf8()..], "")
}

/// Returns whether a `<` after this character begins generic arguments.
fn ends_name(c: char) -> bool {
    is_of_identifier(c) || c == '}'
}

fn is_of_identifier(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(symbol: &str) -> String {
        assert!(symbol.starts_with("_ZN"), "{symbol}");
        family(symbol).expect("a symbol of Rust")
    }

    fn v0(symbol: &str) -> String {
        assert!(symbol.starts_with("_R"), "{symbol}");
        family(symbol).expect("a symbol of Rust")
    }

    #[test]
    fn a_generic_method_is_one_family_whatever_the_mangling() {
        let of_legacy = "_ZN7candide5table18Table$LT$R$C$P$GT$9get_units17h0123456789abcdefE";
        assert_eq!(legacy(of_legacy), "candide::table::Table::get_units");
        // <candide::table::Table<u8, candide::Occ>>::get_units::<Vec<u8>>, with disambiguators.
        let of_v0 = "_RINvMNtCs1_7candide5tableINtB3_5TablehNtB5_3OccE9get_unitsINtB5_3VechEEB5_";
        assert_eq!(v0(of_v0), "candide::table::Table::get_units");
    }

    #[test]
    fn copies_that_differ_in_their_hash_are_of_one_family() {
        let first = legacy("_ZN7candide5epoch3pin17h0123456789abcdefE");
        assert_eq!(first, "candide::epoch::pin");
        assert_eq!(legacy("_ZN7candide5epoch3pin17hfedcba9876543210E"), first);
        assert_eq!(legacy("_ZN7candide5epoch3pin17hfedcba9876543210E.llvm.42"), first);
    }

    #[test]
    fn the_trait_of_an_implementation_stays() {
        let of_legacy = "_ZN70_$LT$candide..Set$LT$K$GT$$u20$as$u20$core..convert..From\
                         $LT$V$GT$$GT$4from17h0123456789abcdefE";
        assert_eq!(legacy(of_legacy), "<candide::Set as core::convert::From>::from");
        // <candide::Set<u8> as core::From<u8>>::from
        let of_v0 = "_RNvXC7candideINtB2_3SethEINtC4core4FromhE4from";
        assert_eq!(v0(of_v0), "<candide::Set as core::From>::from");
        let of_a_primitive = "_ZN4core3num21_$LT$impl$u20$u32$GT$3pow17h0123456789abcdefE";
        assert_eq!(legacy(of_a_primitive), "core::num::<impl u32>::pow");
    }

    #[test]
    fn closures_have_no_numbers() {
        let of_legacy = "_ZN7candide4load28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE";
        assert_eq!(legacy(of_legacy), "candide::load::{closure}");
        // candide::load::<u8>::{closure#0}, and {closure#1} within the second one.
        assert_eq!(v0("_RNCINvC7candide4loadhE0B3_"), "candide::load::{closure}");
        assert_eq!(v0("_RNCNCINvC7candide4loadhEs_00B5_"), "candide::load::{closure}::{closure}");
        // <candide::load::<u8>::{closure#0} as core::Call<()>>::once
        let of_a_trait = "_RNvXC7candideNCINvB2_4loadhE0INtC4core4CalluE4once";
        assert_eq!(v0(of_a_trait), "<candide::load::{closure} as core::Call>::once");
    }

    #[test]
    fn nested_arguments_go_with_all_that_is_in_them() {
        let nested = "core::drop_in_place<alloc::Vec<(fn(A) -> Option<B>, <C as D<E>>::F)>>";
        assert_eq!(without_arguments(nested), "core::drop_in_place");
        let closure = "a::f::<b::C<{ 3 }>, fn() .> D>::{closure#2}";
        assert_eq!(without_arguments(closure), "a::f::{closure}");
        let projected = "<<a::B<C> as d::E<F>>::G as h::I>::j::<K>";
        assert_eq!(without_arguments(projected), "<<a::B as d::E>::G as h::I>::j");
        assert_eq!(without_arguments("<[a::B<C>; 3] as d::E>::f"), "<[a::B; 3] as d::E>::f");
        let of_object = "<&dyn for<'a> a::B<'a, C> as d::E>::f";
        assert_eq!(without_arguments(of_object), "<&dyn for a::B as d::E>::f");
        assert_eq!(without_arguments("<[a::B<C>]>::sort::<D>"), "<[a::B]>::sort");
        assert_eq!(without_arguments("a::b<c::{shim:vtable#0}"), "a::b", "cut off");
    }

    #[test]
    fn symbols_of_other_languages_have_no_family() {
        assert_eq!(family("memcpy"), None);
        assert_eq!(family("main"), None);
    }

    #[test]
    fn the_first_path_names_the_crate() {
        assert_eq!(crate_of("candide::table::Table::get"), "candide");
        assert_eq!(crate_of("<&candide::Set as core::fmt::Debug>::fmt"), "candide");
        assert_eq!(crate_of("<u32 as core::fmt::Debug>::fmt"), "core");
        assert_eq!(crate_of("<[u8]>::sort"), "core");
        assert_eq!(crate_of("<(u8, measure::Row) as core::fmt::Debug>::fmt"), "measure");
    }
}
