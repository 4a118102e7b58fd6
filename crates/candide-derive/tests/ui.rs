//! What the compiler says about mistakes, in the words of Rust 1.95: other versions may need other
//! `.stderr` files.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
