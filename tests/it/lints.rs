//! The macros under Clippy's lints, in functions of all kinds. The tests of the derives compile the same functions under
//! the compiler's lints.

#[forbid(clippy::all, clippy::pedantic, clippy::nursery)]
#[path = "../../recorder-macros/tests/ui/lints/corpus.rs"]
mod corpus;

#[test]
fn what_is_compiled_under_all_lints_runs() {
    corpus::main();
}
