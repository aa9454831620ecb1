//! Samples and the names of functions.

use super::profile;
use super::roles::play;
use crate::fixtures::*;
use std::collections::HashSet;

#[test]
fn a_hot_function_has_nearly_all_samples_of_its_thread() {
    let test = plays!(|part| play(&part));
    let Some(profiled) = profile(test, "hot", &["--stacks", "--resolve"]) else { return };
    let named = profiled.of("THREAD_SEEN").find(|(_, seen)| seen["name"] == "hot").map(|(_, seen)| seen);
    let thread = &named.expect("the thread has a name")["thread_id"];
    let hot: HashSet<u64> = profiled
        .of("RESOLVED")
        .filter(|(_, name)| name["function"] == "hot_function")
        .map(|(_, name)| name["address"].number())
        .collect();
    assert!(!hot.is_empty(), "the function has no name");
    let stacks: HashMap<u64, Vec<u64>> = profiled
        .of("STACK")
        .map(|(_, stack)| {
            let addresses = stack["addresses"].list().iter().map(|address| address.number());
            (stack["stack_id"].number(), addresses.collect())
        })
        .collect();
    let samples: Vec<u64> = profiled
        .of("SAMPLE")
        .filter(|(_, sample)| sample["kind"] == "ON_PROCESSOR" && sample["thread_id"] == *thread)
        .map(|(_, sample)| sample["stack_id"].number())
        .collect();
    let in_hot = samples.iter().filter(|id| stacks[id].iter().any(|address| hot.contains(address))).count();
    let ran = profiled.numbers("ran")[0];
    let (found, lost) = (samples.len() as u64, profiled.summary["kernel_lost"].number());
    // A virtual processor that does not run has no timer.
    let expected = ran * 997 / 1_000_000_000;
    assert!(found <= expected + expected / 4 && found + lost >= expected / 2, "{found} of {expected}, {lost} lost");
    assert!(found >= 20, "{found} samples are too few for this test");
    assert!(in_hot * 100 >= samples.len() * 95, "{in_hot} of {}", samples.len());
    // The stack goes on to where the thread begins: without frame pointers, by the tables of the files.
    let deep = samples.iter().filter(|id| stacks[id].len() >= 5).count();
    assert!(deep * 100 >= samples.len() * 90, "{deep} of {} stacks are deep", samples.len());
    let files: Vec<&str> = profiled.of("MAPPING").map(|(_, file)| file["path"].text()).collect();
    assert!(files.iter().any(|file| file.contains("libc")), "{files:?}");
}
