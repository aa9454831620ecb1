//! Mistakes that the derives refuse. For each, the test also checks where the compiler's error points.
//!
//! The files `*.stderr` have the messages of the current stable compiler. After a change of the messages or of the
//! compiler, run `TRYBUILD=overwrite cargo test -p eventring-macros` and read the differences.

#[test]
fn mistakes_are_compile_errors_at_the_field_or_attribute() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}

#[test]
fn what_is_right_compiles() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
}
