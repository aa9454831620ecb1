//! Threads and forks.

mod plugin;

use plugin::{MODES, assembled, compiled, counts, new_directory, plugin, run, text};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

#[test]
fn four_threads_and_a_forked_child_count_their_own_instructions() {
    let Some(plugin) = plugin() else { return };
    let guest = compiled("threads");
    for mode in MODES {
        let output = text(&run(plugin, &format!("mode={mode}"), &guest).stdout);
        let lines: BTreeMap<&str, u64> =
            output.lines().map(|line| line.split_once(' ').unwrap()).map(|(k, v)| (k, v.parse().unwrap())).collect();
        let mut expected: BTreeMap<&str, u64> = [
            ("thread0", 2_000_000),
            ("thread1", 4_000_000),
            ("thread2", 6_000_000),
            ("thread3", 8_000_000),
            ("child-total-grows", 2_000_000),
        ]
        .into();
        expected.extend(["begins-at-zero0", "begins-at-zero1", "begins-at-zero2", "begins-at-zero3"].map(|k| (k, 1)));
        expected.extend(["all-in-the-total", "parent-keeps-its-total"].map(|k| (k, 1)));
        expected.extend(["child-thread-goes-on", "child-total-begins-at-zero"].map(|k| (k, 1)));
        assert_eq!(lines, expected, "mode {mode}");
    }
}

#[test]
fn ten_thousand_short_threads_are_all_in_the_total_and_share_few_slots() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("brief");
    for mode in MODES {
        let counts = counts(plugin, mode, &guest);
        let ([own, total], slots) = counts.split_first_chunk().unwrap();
        // The total is asked 10 instructions after the thread's count. Each thread executes 1,011.
        assert_eq!(total - own, 10 + 10_000 * 1011, "mode {mode}");
        assert_eq!(slots.len(), 10_000);
        assert!(!slots.contains(&0), "a thread has no slot");
        let different = BTreeSet::from_iter(slots).len();
        // A thread may still end when the next one begins.
        assert!(different < 100, "mode {mode}: {different} slots");
    }
}

#[test]
fn each_process_reports_its_own_instructions() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("exits");
    for mode in MODES {
        let report = new_directory("report").join("report.json");
        run(plugin, &format!("mode={mode},report={}", report.display()), &guest);
        run(plugin, &format!("mode={mode},report={}", report.display()), &guest);
        let text = fs::read_to_string(&report).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        let pids: BTreeSet<&str> = lines.iter().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(pids.len(), 4, "{text}");
        // The child ends first.
        let expected = [2 + 1 + 4000 + 3, 1 + 2000 + 2 + 2 + 5 + 3];
        for (line, expected) in lines.iter().zip(expected.iter().cycle()) {
            let (pid, rest) = line.strip_prefix("{\"pid\":").and_then(|line| line.split_once(',')).expect(line);
            assert!(pid.parse::<u32>().is_ok(), "{line}");
            let (start, api) = rest.split_once("\"qemu_api\":").expect(line);
            assert_eq!(start, format!("\"instructions\":{expected},\"mode\":\"{mode}\","), "{text}");
            assert!(api.strip_suffix('}').is_some_and(|api| api.parse::<u32>().is_ok()), "{line}");
        }
    }
}
