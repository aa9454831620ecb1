//! The program beside a reader in Python that was written from the pages alone (`tests/oracle`).

use crate::consumers;
use crate::fixtures::*;
use crate::random_program;
use std::ops::Range;

/// The number of random programs, or what EVENTRING_ORACLE says.
const PROGRAMS: u64 = 300;
/// So many have their rings at the same time.
const AT_ONCE: usize = 60;
/// Selections are tried on one in so many.
const SELECTED: u64 = 30;

/// Has the oracle read inputs and compare. Returns false if what it needs is missing.
fn agrees(inputs: &[String], selections: &str) -> bool {
    let Some(mut oracle) = consumers::script("oracle") else { return false };
    oracle.env("EVENTRING", crate::program::PROGRAM).env("ORACLE_SELECTIONS", selections).args(inputs);
    let output = oracle.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(" 0 differences") && !said.starts_with("0 answers"), "{said}");
    true
}

/// Has programs of these seeds record and be captured, and the oracle compare what the program says of it.
fn compare_programs(seeds: Range<u64>, test: &str) {
    let dir = directory();
    let (mut plain, mut selected) = (Vec::new(), Vec::new());
    for seed in seeds {
        let place = |name: &str| dir.path().join(format!("{name}-{seed}"));
        let (spans, orders) = (place("spans"), place("spans").with_extension("orders"));
        let capture = dir.path().join(format!("capture-{seed}.evc"));
        let overflows = seed % 50 == 25;
        if seed % 3 == 2 && !overflows {
            finish(play(test, &seed.to_string(), &spans));
        } else {
            // Some rings hold only the end of what was recorded.
            random_program::record(&spans, &orders, if overflows { 400 } else { seed % 5 + 1 }, seed);
        }
        let [spans, orders, file] = [&spans, &orders, &capture].map(|path| argument(path));
        let options: &[&str] = match seed % 8 {
            1 | 5 => &["--rotate-size", "16k"],
            3 => &["--max-level", "info"],
            _ => &[],
        };
        // Typed events that outlive all that their spans recorded show these as perhaps open: no page says so.
        let rings: &[&str] = if overflows { &[spans] } else { &[spans, orders] };
        run!("capture", "-o", file, rings, options).ends(0);
        let mut files: Vec<PathBuf> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files
            .retain(|path| argument(path).contains(&format!("/capture-{seed}.")) && !argument(path).ends_with(".ends"));
        files.sort();
        let files: Vec<&str> = files.iter().map(|path| argument(path)).collect();
        let into = if seed % SELECTED == 1 { &mut selected } else { &mut plain };
        into.push(if seed % 2 == 0 { spans.to_owned() } else { files.join(",") });
        if seed % 5 == 0 {
            into.push(orders.to_owned());
        }
    }
    if agrees(&plain, "0") {
        agrees(&selected, "3");
    }
}

#[test]
fn an_independent_reader_finds_the_same_values_in_random_programs_and_captures() {
    let test = plays!(|seed| {
        let seed = seed.parse().unwrap();
        random_program::record_and_die(seed % 3 + 1, seed);
    });
    let programs = std::env::var("EVENTRING_ORACLE").map_or(PROGRAMS, |count| count.parse().unwrap());
    for first in (0..programs).step_by(AT_ONCE) {
        compare_programs(first..programs.min(first + AT_ONCE as u64), test);
    }
}
