//! Stacks of open spans, and captures with triggers that have what the kernel says.

use super::roles::play;
use crate::fixtures::*;
use eventring_stress::users::can_be_played;

#[test]
fn an_open_span_has_the_stack_of_its_thread_and_a_file_of_a_trigger_has_its_switches() {
    let test = plays!(|part| play(&part));
    if !can_be_played() {
        return;
    }
    let (directory, [place]) = places(["hung"]);
    let mut talk = Talk::start(test, "hang", &place);
    talk.hear();
    let span_of = |answer: &Value, name: &str| {
        let spans = answer["spans"].list();
        spans.iter().find(|span| span["name"] == name).cloned().unwrap_or_else(|| panic!("{answer:#}"))
    };
    let answer = run!("open", &place, "--stacks", "--json").json();
    let stack = span_of(&answer, "wait")["stack"].list().clone();
    assert!(stack.iter().any(|frame| frame["name"] == "stuck_function"), "{stack:#?}");
    assert!(stack[0]["kernel"] == true && stack.iter().any(|frame| frame["kernel"] == false), "{stack:#?}");
    run!("open", &place, "--stacks").shows("at stuck_function");
    // The thread goes on: spans close after it was looked at, and one of them has a file.
    let name = argument(&directory.path().join("cut-{n}.evc")).to_owned();
    let options =
        ["--before", "3s", "--after", "300ms", "--max-files", "1", "-d", "4s", "--sched", "--stacks", "--json"];
    let mut words = vec!["capture", argument(&place), "--on", "span=late dur>100ms", "-o", &name];
    words.extend(options);
    let file = program::place(&directory, "cut-1.evc");
    // On a busy machine the kernel may leave out the few stacks of a thread that mostly waits.
    let mut tries = 20;
    let captured = loop {
        let captured = run(&words).ends(0);
        let lines = run!("watch", &file, "--json").json_lines();
        let count = |name: &str| lines.iter().filter(|line| line["name"] == name).count();
        let counts = ["SWITCHED_OUT", "SWITCHED_IN", "THREAD_SEEN", "STACK", "MAPPING"].map(count);
        tries -= 1;
        if counts.iter().all(|count| *count > 0) {
            break captured;
        }
        assert!(tries > 0, "{counts:?}: {captured:?}");
        // With one of the two left, the next file would have the next number.
        for left in [file.clone(), file.with_extension("evc.json")] {
            fs::remove_file(left).unwrap();
        }
    };
    let cut = captured.said();
    let answer = run!("open", &file, "--stacks", "--json").json();
    crate::ask::schemas::check(&[("capture", cut), ("open", answer.clone())]);
    assert!(!span_of(&answer, "late")["stack"].list().is_empty(), "{answer:#}");
    assert!(talk.end().success());
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|file| !file.to_string_lossy().ends_with("-sched")), "{left:?}");
}
