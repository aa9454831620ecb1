//! Blocks of several captures, of damaged ones, of archives, and of a ring whose reader is killed again and again.

use super::KEPT;
use super::live::node;
use crate::fixtures::*;
use eventring_stress::chain::Made;

fn ids(lines: &[Value]) -> Vec<(u64, String)> {
    lines.iter().map(|line| (line["number"].number(), line["id"].to_string())).collect()
}

#[test]
fn all_rings_of_captures_are_read_and_what_is_damaged_is_said() {
    let dir = directory();
    let mut captures = Vec::new();
    for (name, first) in [("one", 10), ("two", 20)] {
        let ring = place(&dir, name);
        let recorder = node(&ring);
        let mut made = Made::default();
        for number in first..first + 3 {
            let tag = made.block(number, number as u8, 2);
            made.finalize(tag);
        }
        made.record(0, &recorder);
        let capture = place(&dir, &format!("{name}.evc"));
        run!("capture", &ring, "--now", "-o", &capture).ends(0);
        captures.push(capture);
    }
    let (one, two) = (place(&dir, "one"), place(&dir, "two"));
    let both = place(&dir, "both.evc");
    run!("capture", &one, &two, "-o", &both).ends(0);
    for names in [vec![argument(&both)], captures.iter().map(|path| argument(path)).collect()] {
        let blocks = run(&[&["exec", "blocks", "--json"], &names[..]].concat()).json_lines();
        let numbers: Vec<u64> = blocks.iter().map(|block| block["number"].number()).collect();
        assert_eq!(numbers, [10, 11, 12, 20, 21, 22]);
        assert!(blocks.iter().all(|block| block["state"] == "finalized"));
        let summary = run(&[&["summary", "--json"], &names[..]].concat()).json();
        assert_eq!((&summary["blocks"], &summary["transactions"]), (&6.into(), &12.into()));
    }
    let whole = fs::read(&both).unwrap();
    fs::write(&both, &whole[..whole.len() * 2 / 3]).unwrap();
    run!("exec", "blocks", &both).fails(6, "error: ");
    run!("exec", "replay", &both, "--ring", &place(&dir, "again")).fails(6, "error: ");
}

#[test]
fn a_file_that_an_archive_lacks_costs_one_block_and_what_the_ring_has_comes_all_the_same() {
    let (_dir, [archive, all, late]) = places(["archive", "all", "late"]);
    let record = |ring, numbers: std::ops::RangeInclusive<u64>| {
        let recorder = node(ring);
        let mut made = Made::default();
        for number in numbers {
            let tag = made.block(number, number as u8, 2);
            made.finalize(tag);
        }
        made.record(0, &recorder);
        recorder
    };
    let _rings = (record(&all, 1..=6), record(&late, 5..=8));
    run!("exec", "archive", &all, "-o", &archive).ends(0);
    let file = archive.join("0/3.bcap");
    let whole = fs::read(&file).unwrap();
    let read = || {
        let wait = ["--from", "1", "--archive", argument(&archive), "--archive-wait", "100ms"];
        let ended = run(&[&["exec", "blocks", argument(&late), "--strict", "--json"], &wait[..]].concat());
        let numbers: Vec<u64> = ended.json_lines().iter().map(|block| block["number"].number()).collect();
        (numbers, ended.code, ended.err)
    };
    let missed = "block 3 is neither in the ring nor in the archive";
    assert_eq!(read(), ((1..=8).collect(), Some(0), String::new()));
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let (numbers, code, err) = read();
    assert_eq!((numbers, code), (vec![1, 2, 4, 5, 6, 7, 8], Some(7)), "{err}");
    assert!(err.contains(missed) && err.contains("3.bcap: it is damaged: "), "{err}");
    fs::remove_file(&file).unwrap();
    let (numbers, code, err) = read();
    assert_eq!((numbers, code), (vec![1, 2, 4, 5, 6, 7, 8], Some(16)), "{err}");
    assert!(err.contains(missed), "{err}");
}

#[test]
fn an_archive_is_written_read_and_replayed() {
    let recording = real_data::path("emn-30b-15m.snapshot.zst").unwrap_or_else(|| KEPT.into());
    let (_dir, [archive, ring]) = places(["archive", "node"]);
    let done = run!("exec", "archive", &recording, "-o", &archive, "--json").json();
    let finals = run!("exec", "blocks", &recording, "--json", "--min-stage", "finalized").json_lines();
    assert_eq!((&done["blocks"], &done["not_archived"]), (&finals.len().into(), &0.into()));
    assert!(!finals.is_empty());
    let stored = run!("exec", "blocks", &archive, "--json").json_lines();
    assert_eq!(ids(&stored), ids(&finals));
    for (stored, recorded) in stored.iter().zip(&finals) {
        assert_eq!((&stored["state"], &stored["complete"]), (&"finalized".into(), &true.into()));
        assert_eq!(stored["transactions"], recorded["transactions"]);
    }
    let last = stored.last().unwrap()["number"].number();
    let from = run!("exec", "blocks", &archive, "--json", "--from", &last.to_string()).json_lines();
    assert_eq!(ids(&from), ids(&stored[stored.len() - 1..]));
    // A second time, everything is there.
    assert_eq!(run!("exec", "archive", &recording, "-o", &archive, "--json").json()["blocks"], 0);
    let file = archive.join((last / 10_000).to_string()).join(format!("{last}.bcap"));
    run!("exec", "blocks", &file).warns("EVCAP_01 with the header of January 2026: 1 bundle with ");
    run!("exec", "replay", &archive, "--ring", &ring).ends(0);
    assert_eq!(ids(&run!("exec", "blocks", &ring, "--json").json_lines()), ids(&stored));
    fs::write(&file, &fs::read(&file).unwrap()[..5000]).unwrap();
    let damaged = run!("exec", "blocks", &archive, "--json").fails(7, "bcap: it is damaged: ");
    assert_eq!(damaged.json_lines().len(), stored.len() - 1);
}

#[test]
fn a_reader_that_is_killed_again_and_again_goes_on_from_the_archive_and_misses_nothing() {
    let kills = std::env::var("EVENTRING_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20_u64);
    let blocks = 5 * kills;
    let (_dir, [ring, archive]) = places(["node", "archive"]);
    let recorder = node(&ring);
    let archiver = live!("exec", "archive", &ring, "-o", &archive, "--follow", "--json");
    wait_while(|| !archive.is_dir());
    let mut made = Made::default();
    for number in 1..=blocks {
        // A proposal that is abandoned, now and then.
        if number % 5 == 0 {
            made.block(number, 255, 4);
        }
        let tag = made.block(number, (number % 251) as u8, 24);
        made.finalize(tag);
    }
    assert!(kills < 20 || made.0.len() > 32_768, "{} events go round the ring", made.0.len());
    let told = thread::scope(|scope| {
        scope.spawn(|| {
            let mut from = 0;
            while from < made.0.len() {
                let to = made.0.len().min(from + 600);
                from = Made(made.0[from..to].to_vec()).record(0, &recorder) + from;
                thread::sleep(Duration::from_millis(15));
            }
        });
        let mut told: Vec<(u64, u64)> = Vec::new();
        for kill in 0.. {
            let from = told.last().map_or("1".to_owned(), |(number, _)| format!("after:{number}"));
            let arguments = ["exec", "blocks", argument(&ring), "--follow", "--json", "--min-stage", "finalized"];
            let mut child = program(&arguments);
            child.args(["--archive", argument(&archive), "--from", &from]).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = child.spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            // The last one reads to the end.
            let lines_before_kill = if kill < kills { 1 + kill % 9 } else { u64::MAX };
            for _ in 0..lines_before_kill {
                if told.last().is_some_and(|(number, _)| *number == blocks) {
                    break;
                }
                // A ring that does not have the block yet ends the program.
                let Some(Ok(line)) = lines.next() else { break };
                let line: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(line["complete"], true, "{line}");
                let id = u64::from_str_radix(&line["id"].text()[2..4], 16).unwrap();
                told.push((line["number"].number(), id));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            if told.last().is_some_and(|(number, _)| *number == blocks) {
                break;
            }
        }
        told
    });
    let expected: Vec<(u64, u64)> = (1..=blocks).map(|number| (number, number % 251)).collect();
    assert_eq!(told, expected);
    archiver.interrupt();
    let archived = archiver.end();
    assert_eq!(archived.json_lines().last().unwrap()["not_archived"], 0, "{archived:?}");
}
