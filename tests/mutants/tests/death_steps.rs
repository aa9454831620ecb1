//! A writer process is killed while one of its threads is parked at a named step of recording. The kill comes
//! immediately, or after the other threads have gone round the ring. The dead writer must leave no half-written
//! event, and no seqno that makes a reader wait.
#![allow(dead_code, reason = "shared by several programs")]

extern crate self as eventring_stress;

#[path = "../../../crates/stress/src/child.rs"]
pub mod child;
#[path = "../../alone/death.rs"]
pub mod death;
#[path = "../../alone/stall/mod.rs"]
pub mod stall;
#[path = "parked/parking.rs"]
mod parking;

use child::{Talk, part, place, play, say};
use death::{Findings, examine, follow, listen};
use eventring::reader::Reader;
use eventring::step::{self, Step};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The numbers of laps between the parking of a writer and the kill of the process. In these laps, the other writers
/// go round the ring. Each kill takes the next number of the list.
const LAPS: [u64; 2] = [0, 2];

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Plays the process that is killed: records, parks a writer, reports this to the parent, and waits for the kill.
/// `part` holds three numbers: the step, the passes and the laps. Writers pass the step as often as the passes say;
/// the next writer parks there. After that, the other writers go round the ring as often as the laps say.
fn write_and_park(part: &str, path: &Path) {
    let words: Vec<u64> = part.split(' ').map(|word| word.parse().unwrap()).collect();
    let [step, passes, laps] = words[..] else { panic!("{part}") };
    step::set_hook(|step| parking::at(step as usize));
    let step = step::ALL[step as usize];
    let path = path.to_owned();
    // The parent opens the ring as soon as it gets the message "recording". So this process sends the message only
    // after the ring exists.
    let watched = path.clone();
    std::thread::spawn(move || death::write_until_killed(&path, death::record_and_tell));
    wait_until(|| Reader::open(&watched).is_ok());
    let reader = Reader::open(&watched).unwrap();
    say("recording");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    if matches!(step, Step::Refused | Step::HolePublished) {
        // A writer comes to this step if it cannot claim its slot. So first another writer is parked inside a slot
        // that it has claimed.
        parking::arm(Step::Claimed as usize, passes);
        wait_until(|| parking::parked() == 1);
    }
    let before = parking::parked();
    parking::arm(step as usize, passes);
    wait_until(|| parking::parked() > before);
    let enough = reader.info().last_seqno + (laps << 15);
    wait_until(|| reader.info().last_seqno >= enough);
    say("parked");
    wait_until(|| false);
}

const TEST: &str = "a_writer_that_is_killed_at_any_step_leaves_nothing_half_and_nobody_waiting";

#[test]
fn a_writer_that_is_killed_at_any_step_leaves_nothing_half_and_nobody_waiting() {
    if let Some(part) = part() {
        return write_and_park(&part, &place());
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let only = std::env::var("EVENTRING_STALL_STEP").ok().filter(|only| !only.is_empty());
    let mut all = Findings::default();
    for (index, step) in step::ALL.iter().enumerate() {
        if only.as_ref().is_some_and(|only| format!("{step:?}") != *only) {
            continue;
        }
        for (passes, laps) in [0, 7, 100].into_iter().zip(LAPS.into_iter().cycle()) {
            let path = directory.path().join(format!("ring{index}-{passes}"));
            let mut command = play(TEST, &format!("{index} {passes} {laps}"), &path);
            command.stderr(Stdio::piped());
            let mut writer = Talk::with(command);
            let told = listen(&mut writer.child);
            assert_eq!(writer.hear(), "recording");
            let reader = Reader::open(&path).unwrap();
            let following = std::thread::spawn({
                let reader = reader.clone();
                move || follow(&reader)
            });
            std::io::Write::write_all(writer.child.stdin.as_mut().unwrap(), b"park\n").unwrap();
            assert_eq!(writer.hear(), "parked");
            writer.kill();
            let mut findings = Findings { kills: 1, ..Findings::default() };
            examine(&reader, following.join().unwrap(), &told.join().unwrap(), &mut findings);
            std::fs::remove_file(&path).unwrap();
            println!("killed at {step:?}, {laps} laps later: {findings}");
            all.add(&findings);
        }
    }
    println!("killed at steps: {all}");
    assert_eq!(all.wrong(), 0, "{:#?}", all.verdict.examples);
    assert!(all.kills > 0);
}
