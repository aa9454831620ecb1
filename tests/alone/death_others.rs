//! While a ring is written and read, its processes are stopped, die, fork or execute another program.

use crate::death::{follow, follow_on, recorder};
use crate::fixtures::*;
use crate::stall::ring::{judge, record};
use crate::stall::seal::{Verdict, fill};
use std::os::unix::process::CommandExt;

fn record_some(recorder: &Recorder, writer: u64, counts: std::ops::Range<u64>) {
    let mut payload = Vec::new();
    for count in counts {
        let words = fill(writer, count, &mut payload);
        assert_ne!(record(recorder, count, words, &payload), 0);
    }
}

fn from_the_start(reader: &Reader) -> Cursor {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    cursor
}

/// Reads and judges the events that are in the ring now.
fn read_on(cursor: &mut Cursor, verdict: &mut Verdict) {
    let mut buffer = Vec::new();
    loop {
        match cursor.next() {
            Next::Event(event) => judge(cursor, &event, &mut buffer, verdict),
            Next::Gap(gap) => verdict.lost += gap.count,
            Next::NotReady => return,
        }
    }
}

fn signal(talk: &Talk, signal: rustix::process::Signal) {
    let pid = i32::try_from(talk.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn readers_that_are_killed_leave_writer_and_other_readers_alone() {
    let test = plays!({
        let mut cursor = from_the_start(&Reader::open(place()).unwrap());
        say("reading");
        let mut verdict = Verdict::default();
        loop {
            read_on(&mut cursor, &mut verdict);
        }
    });
    let (_directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    let mut mine = from_the_start(&Reader::open(&path).unwrap());
    let mut verdict = Verdict::default();
    let (mut count, mut kills) = (0, 0);
    for _ in 0..5 {
        let mut readers: Vec<_> = (0..4).map(|_| Talk::start(test, "reader", &path)).collect();
        readers.iter_mut().for_each(|reader| assert_eq!(reader.hear(), "reading"));
        for mut reader in readers {
            record_some(&recorder, 0, count..count + 500);
            count += 500;
            reader.kill();
            kills += 1;
            record_some(&recorder, 0, count..count + 500);
            count += 500;
            read_on(&mut mine, &mut verdict);
        }
    }
    println!("{kills} readers killed: {verdict}");
    assert_eq!((verdict.read, verdict.lost, verdict.wrong()), (20_000, 0, 0), "{verdict}");
    drop(recorder);
    // A new recorder can take the ring's name immediately. Neither a living reader nor a killed one keeps the name in
    // use.
    crate::death::recorder(&path);
}

#[test]
fn a_reader_that_was_stopped_for_some_laps_goes_on_with_an_exact_count() {
    let test = plays!({
        let mut cursor = from_the_start(&Reader::open(place()).unwrap());
        let mut verdict = Verdict::default();
        read_on(&mut cursor, &mut verdict);
        say("reading");
        let (_, verdict) = follow_on(cursor, verdict);
        say(format!("{} {} {}", verdict.read, verdict.lost, verdict.wrong()));
    });
    let (_directory, [path]) = places(["ring"]);
    let recorder = recorder(&path);
    record_some(&recorder, 0, 0..100);
    let mut reader = Talk::told(test, "reader", &path, "reading");
    signal(&reader, rustix::process::Signal::STOP);
    record_some(&recorder, 0, 100..100_000);
    signal(&reader, rustix::process::Signal::CONT);
    record_some(&recorder, 0, 100_000..101_000);
    drop(recorder);
    let printed = reader.hear();
    let numbers: Vec<u64> = printed.split(' ').map(|number| number.parse().unwrap()).collect();
    println!("a reader stopped for some laps: read, lost, wrong: {printed}");
    assert_eq!((numbers[0] + numbers[1], numbers[2]), (101_000, 0), "{printed}");
    assert!(numbers[1] > 100_000 - (1 << 15) - 1000, "it was stopped for three laps: {printed}");
    assert!(reader.end().success());
}

#[test]
fn a_writer_that_was_stopped_counts_as_live_and_goes_on() {
    let test = plays!({
        let recorder = recorder(&place());
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let recorder = &recorder;
                scope.spawn(move || record_some(recorder, writer, 0..20_000));
            }
            say("recording");
        });
        wait_for_parent();
    });
    let (_directory, [path]) = places(["ring"]);
    let mut writer = Talk::told(test, "writer", &path, "recording");
    let reader = Reader::open(&path).unwrap();
    let mut cursor = from_the_start(&reader);
    let mut verdict = Verdict::default();
    let mut stops = 0;
    for _ in 0..50 {
        signal(&writer, rustix::process::Signal::STOP);
        stops += 1;
        read_on(&mut cursor, &mut verdict);
        assert_eq!(reader.state(), RingState::Live, "stopped is not dead");
        signal(&writer, rustix::process::Signal::CONT);
        std::thread::sleep(Duration::from_micros(500));
    }
    let skipped = || reader.info().extension.map(|ext| ext.refused_claims + ext.overrun_claims).unwrap();
    while cursor.next_seqno() <= 60_000 + skipped() {
        read_on(&mut cursor, &mut verdict);
    }
    let skipped = skipped();
    println!("a writer stopped {stops} times: {verdict}");
    assert_eq!((verdict.read + verdict.lost, verdict.wrong()), (reader.info().last_seqno, 0), "{verdict}");
    assert_eq!(reader.info().last_seqno, 60_000 + skipped);
    assert!(writer.end().success());
    // The recorder has removed the file when it ended. The reader still has the file open, and sees the state
    // "ended".
    assert_eq!(reader.state(), RingState::Ended);
}

#[test]
fn a_fork_in_the_middle_of_recording_gives_a_child_that_records_nothing_and_spoils_nothing() {
    let test = plays!({
        let recorder = recorder(&place());
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let recorder = &recorder;
                scope.spawn(move || record_some(recorder, writer, 0..8000));
            }
            let mut forks = 0;
            for _ in 0..20 {
                // The child only calls functions that take no lock.
                let code = forked::in_child(|| {
                    let seqno = recorder.record(2, [0; 4], b"of the child");
                    let reserved = recorder.reserve(2, [0; 4], 8).is_some();
                    i32::from(seqno != 0 || reserved || recorder.is_enabled())
                });
                assert_eq!(code, 0, "the child could record");
                forks += 1;
            }
            say(format!("{forks} forks"));
        });
        say("recorded");
        wait_for_parent();
    });
    let (_directory, [path]) = places(["ring"]);
    let mut writer = Talk::start(test, "writer", &path);
    let forks = writer.hear();
    assert_eq!(writer.hear(), "recorded");
    let reader = Reader::open(&path).unwrap();
    let mut verdict = Verdict::default();
    read_on(&mut from_the_start(&reader), &mut verdict);
    println!("{forks}: {verdict}");
    let skipped = reader.info().extension.map(|ext| ext.refused_claims + ext.overrun_claims).unwrap();
    assert_eq!((verdict.read, verdict.lost, verdict.wrong()), (24_000, skipped, 0), "{verdict}");
    assert_eq!(reader.state(), RingState::Live, "the children's ends did not end the ring");
    assert!(writer.end().success());
    assert_eq!(reader.state(), RingState::Ended);
}

#[test]
fn a_writer_that_becomes_another_program_counts_as_dead_though_its_process_lives() {
    let test = plays!({
        let recorder = recorder(&place());
        for writer in 0..3 {
            let recorder = recorder.clone();
            std::thread::spawn(move || record_some(&recorder, writer, 0..u64::MAX));
        }
        while recorder.stats().last_seqno < 1000 {
            std::thread::yield_now();
        }
        say("recording");
        let error = std::process::Command::new("cat").exec();
        panic!("{error}");
    });
    let (_directory, [path]) = places(["ring"]);
    let mut writer = Talk::told(test, "writer", &path, "recording");
    let (cursor, verdict) = follow(&Reader::open(&path).unwrap());
    let reader = cursor.reader();
    println!("a writer that became another program: {verdict}");
    assert_eq!(reader.state(), RingState::WriterDied);
    assert_eq!((verdict.read + verdict.lost, verdict.wrong()), (reader.info().last_seqno, 0), "{verdict}");
    assert_eq!(writer.child.try_wait().unwrap(), None, "the process lives");
    // The name is free for the next recorder.
    recorder(&path);
    assert!(writer.end().success());
}
