//! What the compiler says about mistakes, in the words of Rust 1.95: other versions may need other
//! `.stderr` files.

#[test]
fn compile_errors_of_derives_point_to_the_mistake() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
