//! Each layer of the library depends only on the layers that the table in docs/ARCHITECTURE.md allows.

mod tidy;

use tidy::{Layer, has_word, layer_of, layers, sources};

/// Modules that users cannot reach: they are neither in the public API nor in `eventring::__internals`.
const PRIVATE: [&str; 3] = ["arch", "ring", "sync"];

/// Returns the layers that `code` names as `crate::NAME` or `eventring::NAME`. NAME may be one of a list in braces.
fn used(code: &str, all: &[Layer]) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("eventring::")) {
        let rest = &code[at..].split_once("::").unwrap().1;
        let names = match rest.strip_prefix('{') {
            // The first names of a list: `crate::{a::B, c}`.
            Some(list) => first_names(list),
            None => vec![rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap().to_owned()],
        };
        used.extend(names);
    }
    used.retain(|name| all.iter().any(|layer| layer.names.contains(name)));
    used.sort();
    used.dedup();
    used
}

/// Returns the first name of each entry of a list in braces. `list` begins after the opening brace.
fn first_names(list: &str) -> Vec<String> {
    let (mut depth, mut names, mut name, mut is_first) = (0, Vec::new(), String::new(), true);
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(std::mem::take(&mut name));
                is_first = true;
            }
            ':' => is_first = false,
            c if depth == 0 && is_first && !c.is_whitespace() => name.push(c),
            _ => {}
        }
    }
    names.push(name);
    names
}

#[test]
fn every_layer_uses_only_what_the_table_allows() {
    let layers = layers();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(name) = layer_of(&source.path) else { continue };
        let layer = layers.iter().find(|layer| layer.names.iter().any(|known| known == name));
        let layer = layer.unwrap_or_else(|| panic!("src/{} is in no layer of docs/ARCHITECTURE.md", source.path));
        for used in used(&source.code, &layers) {
            let is_allowed = match layer.public_api_only {
                true => !PRIVATE.contains(&used.as_str()),
                false => layer.may_use.contains(&used),
            };
            if !is_allowed && !layer.names.contains(&used) {
                wrong.push(format!("src/{} uses {used}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "not allowed by the table in docs/ARCHITECTURE.md:\n{}", wrong.join("\n"));
}

#[test]
fn every_layer_of_the_table_exists() {
    let sources = sources();
    for layer in layers() {
        for name in layer.names {
            let exists =
                sources.iter().any(|source| layer_of(&source.path) == Some(&name)) || tidy::root().join(&name).is_dir();
            assert!(exists, "docs/ARCHITECTURE.md names {name}, which does not exist");
        }
    }
}

#[test]
fn recorder_and_reader_never_use_each_other_nor_a_reader_the_slots() {
    for source in sources() {
        let (layer, code) = (layer_of(&source.path), &source.code);
        let names = |name| used(code, &layers()).contains(&String::from(name));
        assert!(layer != Some("reader") || !(names("recorder") || names("global")), "src/{}", source.path);
        assert!(layer != Some("recorder") || !names("reader"), "src/{}", source.path);
    }
}

#[test]
fn only_one_file_names_the_atomics_beside_the_operating_system_layer() {
    for source in sources() {
        let exempt = ["sync.rs", "arch/copy_portable.rs"].contains(&source.path.as_str())
            || source.path.starts_with("shm/")
            // The program `eventring` and the clock's simulation may name atomics: the program uses only the public
            // API and std, and the simulation is test code.
            || source.path.starts_with("cli/")
            || source.path.starts_with("clock/simulation")
            || source.path.starts_with("bin/");
        let names = source.code.contains("std::sync::atomic") || source.code.contains("core::sync::atomic");
        assert!(exempt || !names, "src/{} names atomics; use crate::sync", source.path);
    }
}

#[test]
fn this_test_sees_what_it_looks_for() {
    let layers = layers();
    let code = "use crate::{ring::memory::{A, schema}, clock}; fn f() { crate::shm::x(); eventring::reader::y(); }";
    assert_eq!(used(code, &layers), ["clock", "reader", "ring", "shm"]);
    assert!(has_word("unsafe { x }", "unsafe") && !has_word("unsafe_op", "unsafe"));
}
