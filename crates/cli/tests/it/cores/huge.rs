//! Core files of programs whose rings are on huge pages.

use super::{check, crash};
use crate::fixtures::*;
use eventring_stress::huge_pages::HugePages;
use eventring_stress::missing;

/// The pages of three rings.
const PAGES: u64 = 20;

#[test]
fn rings_on_huge_pages_are_in_a_core_file_with_a_name_and_without_if_the_recorder_asks_for_it() {
    // Only the thread that mounts sees the mount, and the programs that it starts.
    thread::spawn(|| {
        for (memory, events) in [("huge", 40), ("huge-unlinked", 1_700), ("huge-left-out", 3)] {
            // Not in /dev/shm, which is another one while there are huge pages.
            let directory = tempfile::tempdir().unwrap();
            let mount = place(&directory, "huge");
            fs::create_dir(&mount).unwrap();
            let _pages = match HugePages::with_pages(PAGES, &mount) {
                Ok(pages) => pages,
                Err(error) => return missing(format_args!("cannot set up huge pages: {error}")),
            };
            let Some((core, told)) = crash(directory.path(), memory, "abort", events) else { return };
            let capture = place(&directory, "core.evc");
            let answer = run!("core", &core, "-o", &capture, "--json");
            if memory == "huge-left-out" {
                assert!(answer.code == Some(3) && answer.err.contains("huge/orders"), "{answer:?}");
                continue;
            }
            let answer = answer.json();
            assert_eq!((answer["rings"].list().len(), &answer["lost"]), (3, &0.into()), "{answer}");
            assert_eq!(answer["not_in_core"], Value::Array(Vec::new()), "{answer}");
            check(&capture, told);
        }
    })
    .join()
    .unwrap();
}
