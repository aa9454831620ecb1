//! The counts of spans whose number of instructions is known.

mod plugin;

use plugin::{
    MODES, assembled, compile, compiled, counts, plugin, plugin_with_a_fault, qemu_major, run, run_with, text,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The instructions of an empty span: those of the stop request.
const EMPTY: u64 = 5;

/// Returns the counts of the spans of a guest without the constant that its first, empty span shows.
fn spans(plugin: &Path, mode: &str, guest: &Path) -> Vec<u64> {
    let counts = counts(plugin, mode, guest);
    assert_eq!(counts[0], EMPTY, "mode {mode}");
    counts[1..].iter().map(|count| count - EMPTY).collect()
}

#[test]
fn three_thousand_instructions_and_a_loop_of_two_million_and_one_are_counted_exactly() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("known");
    for mode in MODES {
        assert_eq!(spans(plugin, mode, &guest), [3000, 2_000_001], "mode {mode}");
    }
}

#[test]
fn blocks_entered_in_the_middle_and_crossed_pages_and_repeated_copies_are_counted_exactly() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("shapes");
    // QEMU 7.2 counts each repetition, and QEMU 10.0 the instruction, as processors do.
    let copy = if qemu_major() < 10 { 1000 + 1 } else { 1 };
    let expected = [1 + 100 * 9 + 99 * 7 + 4, 4 + 1000 * 6, 4 + 1000 * 3, 4 + 1000 * 3, 3 + copy, 2];
    for mode in MODES {
        assert_eq!(spans(plugin, mode, &guest), expected, "mode {mode}");
    }
}

#[test]
fn without_the_correction_instructions_that_cross_a_page_are_counted_twice() {
    if plugin().is_none() {
        return;
    }
    let plugin = plugin_with_a_fault();
    if qemu_major() >= 10 {
        // This QEMU shows each instruction once, so there is nothing to correct.
        assert_eq!(spans(&plugin, "tb", &assembled("known")), [3000, 2_000_001]);
        return eventring_stress::skipped("this QEMU does not have the fault that the plugin corrects");
    }
    let known = spans(&plugin, "tb", &assembled("known"));
    assert!(known[0] > 3000, "{known:?}");
    assert_eq!(known[1], 2_000_001);
    let shapes = spans(&plugin, "tb", &assembled("shapes"));
    assert_eq!(shapes[1], 4 + 1000 * 6 + 1000, "the crossing instruction in a loop");
    // A block that begins with the crossing instruction was never wrong, and neither was one that ends with the page.
    assert_eq!(shapes[2..4], [4 + 1000 * 3, 4 + 1000 * 3]);
    // A call for each instruction needs no correction.
    assert_eq!(spans(&plugin, "insn", &assembled("known"))[0], 3000);
}

#[test]
fn a_signal_handler_adds_its_own_instructions_and_no_others() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("signal");
    for mode in MODES {
        assert_eq!(spans(plugin, mode, &guest), [6 + 7, 1 + 100 * 15], "mode {mode}");
    }
}

#[test]
fn a_timer_that_interrupts_loops_adds_the_instructions_of_its_handler_and_no_others() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("timer");
    for mode in MODES {
        let counts = counts(plugin, mode, &guest);
        let [empty, count, calls, rounds] = counts[..] else { panic!("{counts:?}") };
        assert!(calls >= 50, "{calls}");
        // The last 5 instructions stop the timer, the first clears the number of rounds. QEMU delivers a signal between
        // two blocks, so the last one may come after the count has ended.
        let expected = [calls, calls - 1].map(|calls| 1 + rounds * 100_002 + 5 + calls * 4);
        assert!(expected.contains(&(count - empty)), "mode {mode}: {counts:?}");
    }
}

/// The README says what a fault costs in the mode `tb`. This test fails if a QEMU counts faults otherwise.
#[test]
fn a_fault_counts_the_rest_of_its_block_once_more_by_blocks_and_not_by_instructions() {
    let Some(plugin) = plugin() else { return };
    let guest = assembled("fault");
    let by_instruction = spans(plugin, "insn", &guest);
    assert_eq!(by_instruction, [3 + 20 + 6, 3 + 1 + 20 + 6]);
    let by_block = spans(plugin, "tb", &guest);
    // The rest of the first block is 20 instructions and the request; of the second, a jump.
    assert_eq!(by_block, [by_instruction[0] + 20 + EMPTY, by_instruction[1] + 1]);
    // With blocks of one instruction there is no rest.
    let option = if qemu_major() < 9 { "-singlestep" } else { "-one-insn-per-tb" };
    let single = run_with(plugin, "mode=tb", &[option], &guest).stdout;
    let (words, _) = single.as_chunks::<8>();
    let single: Vec<u64> = words[1..].iter().map(|word| u64::from_le_bytes(*word) - EMPTY).collect();
    assert_eq!(single, by_instruction);
}

#[test]
fn a_c_program_measures_spans_by_each_way_of_the_header() {
    let Some(plugin) = plugin() else { return };
    let guest = compiled("spans");
    let expected = "original 10000\ndifference 10000\nnested 0\ntotal 10000\n";
    for mode in MODES {
        let output = text(&run(plugin, &format!("mode={mode}"), &guest).stdout);
        assert_eq!(output, format!("{expected}slot 10000\nslot-agrees 1\n"), "mode {mode}");
        let moved = run_with(plugin, &format!("mode={mode}"), &["-B", "0x100000000"], &guest).stdout;
        assert_eq!(text(&moved), format!("{expected}slot none\n"), "mode {mode}, with a guest base");
    }
}

#[test]
fn two_runs_of_a_program_count_the_same_and_so_do_both_modes() {
    let Some(plugin) = plugin() else { return };
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/count.c");
    let guest = compile(&source, &[]);
    let outputs: Vec<String> =
        ["tb", "tb", "insn", "insn"].map(|mode| text(&run(plugin, &format!("mode={mode}"), &guest).stdout)).into();
    assert!(outputs[0].contains("1000 numbers were sorted by "), "{}", outputs[0]);
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:#?}");
    let native = Command::new(&guest).output().unwrap();
    assert!(text(&native.stdout).starts_with("not counted"), "{native:?}");
}
