//! The public items of each library, with all features, are those that were reviewed. The test compares rustdoc's own
//! listings with snapshots.
//!
//! After an intended change, run this test with `INSTA_UPDATE=always` and review the difference of the snapshots.

use crate::fixtures::*;
use std::fmt::Write as _;

/// The published libraries, each with the most public items that it may have.
const LIBRARIES: [(&str, usize); 15] = [
    ("eventring", 300),
    ("eventring_capture", 80),
    ("eventring_export", 24),
    ("eventring_live", 40),
    ("eventring_exec", 62),
    ("eventring_door", 5),
    ("eventring_gateway", 5),
    ("eventring_profile", 40),
    ("eventring_parquet", 15),
    ("eventring_otlp", 15),
    ("eventring_forward", 20),
    ("eventring_report", 24),
    ("eventring_tasks", 20),
    ("eventring_ask", 10),
    ("eventring_tokio", 25),
];

/// The kinds of members that rustdoc lists beside an item.
const MEMBERS: [&str; 6] = ["variant", "structfield", "associatedconstant", "associatedtype", "tymethod", "method"];

#[test]
#[ignore = "it documents every library, which takes minutes; `.ci/run docs` runs it"]
fn the_public_surface_of_each_library_is_the_reviewed_one_and_small() {
    let status = Command::new(env!("CARGO"))
        .args([
            "doc",
            "--quiet",
            "--workspace",
            "--no-deps",
            "--features",
            "eventring-exec/alloy,eventring-exec/stream",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success(), "cargo doc failed");
    // The test program lies in TARGET/debug/deps.
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("doc");
    for (library, items_max) in LIBRARIES {
        let (listing, items) = surface(&target.join(library));
        assert!(items > 0, "rustdoc's listing of {library} has another form than this test reads");
        assert!(items <= items_max, "{library}: {items} public items, at most {items_max}; make some private");
        insta::assert_snapshot!(library, listing);
    }
}

/// Returns the listing of a library's items, and their number.
fn surface(pages: &Path) -> (String, usize) {
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
    (listing, items)
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
