//! What the compiler says about mistakes.

#[test]
fn mistakes_are_explained_where_they_are() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
