//! The macros under lints that are set to `deny`.
#![deny(forbidden_lint_groups)]
#![deny(warnings)]
#![deny(
    future_incompatible,
    keyword_idents,
    let_underscore,
    nonstandard_style,
    refining_impl_trait,
    rust_2018_compatibility,
    rust_2018_idioms,
    rust_2021_compatibility,
    rust_2024_compatibility,
    unused,
    // Lints that are in no group and allowed by default, as far as they are about a program.
    ambiguous_negative_literals,
    explicit_outlives_requirements,
    ffi_unwind_calls,
    macro_use_extern_crate,
    meta_variable_misuse,
    missing_copy_implementations,
    missing_debug_implementations,
    missing_docs,
    non_ascii_idents,
    redundant_imports,
    redundant_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unsafe_code,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]

#[path = "../lints/corpus.rs"]
mod corpus;

fn main() {
    corpus::main();
}
