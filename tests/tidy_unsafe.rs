//! `unsafe` and memory orderings stand only where the table in docs/ARCHITECTURE.md says.

mod tidy;

use tidy::{Allowed, Source, has_word, layer_of, layers, sources};

/// Returns a message for each file that contains the word although the table does not allow the word there. Also
/// returns a message for each file that the table lists although the word is not in it.
fn violations(allowed: impl Fn(&tidy::Layer) -> &Allowed, stands_in: impl Fn(&Source) -> bool) -> Vec<String> {
    let layers = layers();
    let sources = sources();
    let mut wrong = Vec::new();
    for source in &sources {
        let layer =
            layer_of(&source.path).and_then(|name| layers.iter().find(|layer| layer.names.iter().any(|n| n == name)));
        let is_allowed = match layer.map(&allowed) {
            None | Some(Allowed::Nowhere) => false,
            Some(Allowed::Everywhere) => true,
            Some(Allowed::In(files)) => files.contains(&source.path),
        };
        if stands_in(source) && !is_allowed {
            wrong.push(format!("src/{} has it, and may not", source.path));
        }
    }
    for layer in &layers {
        if let Allowed::In(files) = allowed(layer) {
            let idle =
                files.iter().filter(|file| !sources.iter().any(|source| source.path == **file && stands_in(source)));
            wrong.extend(idle.map(|file| format!("src/{file} is listed and does not have it")));
        }
    }
    wrong
}

#[test]
fn unsafe_code_stands_only_in_the_modules_that_are_named_for_it() {
    let wrong = violations(|layer| &layer.unsafe_code, |source| has_word(&source.code, "unsafe"));
    assert!(wrong.is_empty(), "`unsafe` against docs/ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn memory_orderings_stand_only_in_the_layers_that_are_named_for_them() {
    let stands_in = |source: &Source| {
        // `std::cmp::Ordering` is not meant.
        has_word(&source.code, "Ordering")
            && !["cmp::Ordering", "cmp::{Ordering"].iter().any(|import| source.code.contains(import))
    };
    let wrong = violations(|layer| &layer.ordering, stands_in);
    assert!(wrong.is_empty(), "`Ordering` against docs/ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn every_unsafe_block_is_argued() {
    // Clippy's lint `undocumented_unsafe_blocks` refuses an `unsafe` block without a SAFETY comment. This test checks
    // that this lint, and three others, are on for the whole package.
    let manifest = std::fs::read_to_string(tidy::root().join("Cargo.toml")).unwrap();
    for lint in
        ["undocumented_unsafe_blocks", "multiple_unsafe_ops_per_block", "unsafe_op_in_unsafe_fn", "missing_docs"]
    {
        assert!(manifest.contains(&format!("{lint} = \"deny\"")), "{lint}");
    }
    for path in tidy::files(&tidy::root().join("src"), "rs") {
        let text = std::fs::read_to_string(&path).unwrap();
        for lint in ["undocumented_unsafe_blocks", "multiple_unsafe_ops_per_block", "unsafe_op_in_unsafe_fn"] {
            assert!(!text.contains(&format!("allow(clippy::{lint}")), "{}", path.display());
        }
    }
}
