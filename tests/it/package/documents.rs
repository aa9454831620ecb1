//! Links between the project's documents lead somewhere.

use crate::fixtures::*;

/// Returns the targets of the links `[…](…)` in a text, without their anchors. Links into the web are left out.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(|target| target.split('#').next().unwrap()).filter(|to| !to.is_empty() && !to.contains("://")).collect()
}

#[test]
fn every_link_between_documents_leads_somewhere_and_readme_has_one_to_each() {
    let root = &Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect::<Vec<PathBuf>>()
    };
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for document in [in_folder(""), in_folder("docs")].concat() {
        let folder = document.parent().unwrap();
        for link in links(&fs::read_to_string(&document).unwrap()) {
            assert!(folder.join(link).exists(), "{}: {link}", document.display());
        }
        let name = document.file_name().unwrap().to_str().unwrap();
        assert!(folder == root || readme.contains(&format!("(docs/{name})")), "README.md does not link docs/{name}");
    }
}

#[test]
fn the_table_of_features_in_the_documentation_has_each_feature_and_whether_it_is_a_default() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let features = manifest.split("\n[features]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let features: Vec<(&str, &str)> = features.lines().filter_map(|line| line.split_once(" = [")).collect();
    let defaults = features.iter().find(|(name, _)| *name == "default").unwrap().1;
    let mut expected: Vec<(&str, bool)> = features
        .iter()
        .map(|(name, _)| (*name, defaults.contains(&format!("\"{name}\""))))
        .filter(|(name, _)| *name != "default")
        .collect();
    let library = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let rows = library.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once("` | "));
    let mut told: Vec<(&str, bool)> = rows.map(|(name, rest)| (name, rest.ends_with("| yes |"))).collect();
    expected.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, expected);
}
