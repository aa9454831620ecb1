//! The public items of the library, with all features, are those that were reviewed. The test compares rustdoc's own
//! listing with a snapshot.
//!
//! After an intended change, run this test with `INSTA_UPDATE=always` and review the difference of the snapshot.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most public items that the library may have.
const MAX_ITEMS: usize = 300;

/// The kinds of members that rustdoc lists beside an item.
const MEMBERS: [&str; 6] = ["variant", "structfield", "associatedconstant", "associatedtype", "tymethod", "method"];

#[test]
fn the_public_surface_is_the_reviewed_one_and_small() {
    let pages = document();
    let all = fs::read_to_string(pages.join("all.html")).unwrap();
    let (mut listing, mut items) = (String::new(), 0);
    for section in all.split("<h3 id=\"").skip(1) {
        let kind = section.split('"').next().unwrap();
        for link in section.split("<li><a href=\"").skip(1) {
            let (page, rest) = link.split_once("\">").unwrap();
            let path = rest.split('<').next().unwrap();
            writeln!(listing, "{kind} {path}{}", members(&pages.join(page))).unwrap();
            items += 1;
        }
    }
    assert!(items > 100, "rustdoc's listing has another form than this test reads: {items} items found");
    assert!(items <= MAX_ITEMS, "{items} public items, expected at most {MAX_ITEMS}; make some private");
    insta::assert_snapshot!(listing);
}

/// Returns a text with the members of an item: a line for each list of members on the item's page.
fn members(page: &Path) -> String {
    let page = fs::read_to_string(page).unwrap();
    let mut text = String::new();
    for kind in MEMBERS {
        for list in page.split(&format!("<ul class=\"block {kind}\">")).skip(1) {
            let list = list.split("</ul>").next().unwrap();
            let names = list.split("title=\"").skip(1).map(|link| link.split('"').next().unwrap());
            write!(text, "\n    {kind} {}", names.collect::<Vec<_>>().join(" ")).unwrap();
        }
    }
    text
}

/// Runs `cargo doc` for the library. Returns the directory of the pages that it makes.
fn document() -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--quiet", "--no-deps", "--package", "eventring", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success(), "cargo doc failed");
    // The test program lies in TARGET/debug/deps.
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().join("doc/eventring")
}
