//! Planted faults are found by who reads nothing but one answer of 16 KiB.

use super::faults::{FAULTS, look, on_look};
use super::{PLACES, Random, recorded, usual};
use crate::fixtures::*;
use std::cell::RefCell;
use std::rc::Rc;

/// The number of recordings with a fault.
const PLANTED: usize = 50;

/// Returns the flags of an answer of at most 16 KiB that have this name, and name this place.
fn flags<'a>(answer: &'a Value, flag: &str, place: &str) -> Vec<&'a Value> {
    let flags = answer["flags"].list().iter();
    flags.filter(|found| found["flag"] == flag && found.to_string().contains(place)).collect()
}

/// Asks, and checks the size.
fn ask(of: &str) -> Value {
    let answer = run!("ask", of, "--json");
    assert!(answer.out.len() <= 16_384);
    answer.json()
}

#[test]
fn most_planted_faults_are_found_by_flag_and_place_and_the_next_commands_work() {
    let mut missed = Vec::new();
    let mut tried = BTreeSet::new();
    for number in 0..PLANTED {
        let (flag, plant) = FAULTS[number % FAULTS.len()];
        let place = number / FAULTS.len() % PLACES.len();
        let dir = directory();
        let ring = crate::program::place(&dir, "shop");
        let answer = Rc::new(RefCell::new(Value::Null));
        let (asked, of) = (answer.clone(), ring.clone());
        // Asked at the end, or while the tasks are there.
        on_look(move || *asked.borrow_mut() = ask(argument(&of)));
        let mut seeded = Random(number as u64 * 7919 + 13);
        let (_, recorder) = recorded(&dir, "shop", || {
            usual(&mut seeded, 100);
            plant(place, &mut seeded);
            usual(&mut seeded, 100);
        });
        look();
        let answer = answer.take();
        let found = flags(&answer, flag, PLACES[place]);
        match found.first() {
            Some(found) if tried.insert(flag) => {
                let next = found["next"].text().replacen("eventring", PROGRAM, 1);
                let done = Command::new("sh").args(["-c", &next]).output().unwrap();
                assert!(done.status.success() && !done.stdout.is_empty(), "{next}: {done:?}");
            }
            Some(_) => {}
            None => missed.push((flag, PLACES[place], answer)),
        }
        drop(recorder);
    }
    assert!(missed.len() <= PLANTED - 45, "{missed:#?}");
    assert_eq!(tried.len(), FAULTS.len(), "{tried:?}");
}

#[test]
fn the_commands_of_an_answer_work_whatever_the_name_of_the_file_is() {
    let dir = directory();
    let (ring, _recorder) = recorded(&dir, "shop", || {
        usual(&mut Random(5), 50);
        (0..30).for_each(|_| error!("refused"));
    });
    for name in ["-x.evc", "it's `a` $HOME.evc", "two\nlines \\ \u{1b}[31m.evc", "~x.evc", "=x.evc"] {
        let ask = |words: &[&str]| {
            let mut command = crate::program::program(words);
            command.current_dir(dir.path());
            crate::program::finish(command)
        };
        let output = format!("--output={name}");
        ask(&["capture", argument(&ring), "--now", &output]).ends(0);
        let answer = ask(&["ask", "--json", "--", name]).json();
        let next = answer["flags"][0]["next"].text();
        let done = Command::new("bash")
            .args(["-c", &next.replacen("eventring", PROGRAM, 1)])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(done.status.success() && !done.stdout.is_empty(), "{next}: {done:?}");
        let people = ask(&["ask", "--utc", "--", name]).shows(next);
        // `# Recording`, an empty line, and how long it is from when on.
        let begins = people.out.lines().nth(2).unwrap().split(" from ").nth(1).unwrap();
        assert!(begins.starts_with("20") && begins.contains(" UTC on: "), "{begins}");
        assert!(people.out.contains(" errors: refused, at 20"), "{people:?}");
    }
}

#[test]
fn a_damaged_capture_is_flagged_and_a_budget_that_is_too_small_is_refused() {
    let dir = directory();
    let mut seeded = Random(5);
    let (ring, _recorder) = recorded(&dir, "shop", || usual(&mut seeded, 5000));
    let capture = place(&dir, "it's a capture.evc");
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    let bytes = fs::read(&capture).unwrap();
    fs::write(&capture, &bytes[..bytes.len() / 2]).unwrap();
    let answer = run!("ask", &capture, "--json").ends(6).said();
    assert_eq!(answer["flags"][0]["flag"], "damaged");
    let people = run!("ask", &capture, "--budget", "1024");
    assert!(people.out.len() <= 1024 && people.out.contains("**damaged** the capture"), "{people:?}");
    run!("ask", &capture, "--budget", "1023").ends(2);
    // Cut before its first block, it has no span to say something of.
    fs::write(&capture, &bytes[..3000]).unwrap();
    run!("why", &capture).fails(6, "no span has ended").warns("truncated");
}
