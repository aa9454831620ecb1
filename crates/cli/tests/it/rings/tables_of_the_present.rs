//! The file of the present, NAME.now, comes and goes with the rings of its recorder.

use crate::fixtures::*;
use eventring::internal::now_path;
use eventring::now::NowReader;
use std::os::unix::fs::MetadataExt as _;

fn recorder(ring: &Path, keep: bool) -> PerfRecorder {
    spans_in(ring).shifts(15, 21).shards(1).keep(keep).build().unwrap()
}

/// Plays a program that records until its parent ends it.
fn plays(part: &str) {
    let recorder = recorder(&child::place(), part == "keeps");
    say("ready");
    wait_for_parent();
    drop(recorder);
}

fn recording(test: &str, part: &str, ring: &Path) -> Talk {
    Talk::told(test, part, ring, "ready")
}

fn kill(mut talk: Talk) {
    talk.kill();
}

fn clean(directory: &Path, options: &[&str]) -> Value {
    run(&[&["clean", "--json", argument(directory)], options].concat()).json()
}

/// Returns the names of the files in a part of the report of `clean`, with the reasons.
fn whys(files: &Value) -> Vec<(&str, &str)> {
    let files = files.list().iter();
    let name = |file: &'_ str| file.rfind('/').map_or(0, |slash| slash + 1);
    files.map(|of| (of["file"].text(), &of["why"])).map(|(f, w)| (&f[name(f)..], w.text())).collect()
}

#[test]
fn tables_of_a_killed_program_stay_for_readers_and_are_cleaned_with_its_ring() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    let talk = recording(test, "", &ring);
    let cleaned = clean(directory.path(), &[]);
    assert_eq!((whys(&cleaned["removed"]), whys(&cleaned["left"])), (vec![], vec![("shop", "live")]));
    assert_eq!(names_in(directory.path()), ["shop", "shop.now"]);
    kill(talk);
    assert!(NowReader::open_beside(&Reader::open(&ring).unwrap()).unwrap().is_some());
    let removed = vec![("shop", "writer_died"), ("shop.now", "writer_died")];
    let on_disk = fs::metadata(now_path(&ring)).unwrap().blocks() * 512;
    for options in [&["--dry-run"], [].as_slice()] {
        assert_eq!(names_in(directory.path()), ["shop", "shop.now"]);
        let cleaned = clean(directory.path(), options);
        assert_eq!((whys(&cleaned["removed"]), whys(&cleaned["left"])), (removed.clone(), vec![]));
        // Not the length: the file is sparse.
        assert_eq!(cleaned["removed"][1]["file_bytes"], on_disk);
        assert!(on_disk < 1 << 20, "{on_disk}");
    }
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn tables_of_a_program_that_ends_normally_go_with_its_ring() {
    let test = plays!(|part| plays(&part));
    let directory = directory();
    let mut talk = recording(test, "", &directory.path().join("shop"));
    assert_eq!(names_in(directory.path()), ["shop", "shop.now"]);
    assert!(talk.end().success());
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn tables_of_a_kept_ring_stay_with_it_until_ended_rings_are_cleaned() {
    let test = plays!(|part| plays(&part));
    let directory = directory();
    assert!(recording(test, "keeps", &directory.path().join("shop")).end().success());
    let cleaned = clean(directory.path(), &[]);
    assert_eq!((whys(&cleaned["removed"]), whys(&cleaned["left"])), (vec![], vec![("shop", "ended")]));
    let cleaned = clean(directory.path(), &["--ended"]);
    assert_eq!(whys(&cleaned["removed"]), [("shop", "ended"), ("shop.now", "ended")]);
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn tables_without_their_ring_are_cleaned_when_their_writer_is_dead() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    let talk = recording(test, "", &ring);
    fs::remove_file(&ring).unwrap();
    // The next recorder of the name makes no tables: those of the name have a writer.
    let next = recorder(&ring, false);
    assert!(NowReader::open_beside(&Reader::open(&ring).unwrap()).unwrap().is_none());
    let cleaned = clean(directory.path(), &[]);
    assert_eq!(whys(&cleaned["left"]), [("shop", "live"), ("shop.now", "live")]);
    kill(talk);
    // The ring that has the name now is of another recorder.
    let cleaned = run_in!(directory.path(), "clean", "shop");
    let line = cleaned.out.lines().find(|line| line.starts_with("removed ")).unwrap();
    assert!(line.contains("shop.now ") && line.ends_with("tables of a recorder that is gone"), "{cleaned:?}");
    assert_eq!(names_in(directory.path()), ["shop"]);
    drop(next);
}

#[test]
fn a_file_that_only_has_the_name_of_tables_is_never_removed() {
    let test = plays!(|part| plays(&part));
    let (directory, [ring]) = places(["shop"]);
    fs::write(now_path(&ring), "a letter, of more bytes than the words at the start of the file").unwrap();
    let talk = recording(test, "", &ring);
    kill(talk);
    let cleaned = clean(directory.path(), &[]);
    assert_eq!((whys(&cleaned["removed"]), whys(&cleaned["left"])), (vec![("shop", "writer_died")], vec![]));
    assert_eq!(names_in(directory.path()), ["shop.now"]);
    // A recorder that ends normally leaves it, too.
    drop(recorder(&ring, false));
    assert_eq!(names_in(directory.path()), ["shop.now"]);
    // A ring may have such a name, and is one.
    let now = place(&directory, "till.now");
    let description = ContentDescription::new(300, "OTHER");
    let other =
        Recorder::builder(description).config(&now).compact(true).shifts(15, 21).prefault(false).build().unwrap();
    drop(recorder(&directory.path().join("till"), false));
    assert_eq!(run!("list", "--json", directory.path()).json()["rings"][0]["name"], "till.now");
    drop(other);
}

#[test]
fn tables_of_other_users_are_never_removed() {
    let (directory, [ring]) = places(["shop"]);
    drop(recorder(&ring, true));
    if let Err(error) = std::os::unix::fs::chown(now_path(&ring), Some(4711), None) {
        return eventring_stress::missing(format_args!("only root can give files away: {error}"));
    }
    let cleaned = clean(directory.path(), &["--ended"]);
    assert_eq!(whys(&cleaned["removed"]), [("shop", "ended")]);
    assert!(cleaned["left"][0]["message"].text().contains("it belongs to user 4711"), "{cleaned:#}");
    assert_eq!(names_in(directory.path()), ["shop.now"]);
}

#[test]
fn the_next_recorder_of_the_name_replaces_dead_tables_of_any_size_and_version() {
    let (directory, [ring]) = places(["shop"]);
    let write = |magic: &[u8], bytes: u64| {
        drop(recorder(&ring, true));
        let file = File::options().write(true).open(now_path(&ring)).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, magic, 0).unwrap();
        file.set_len(bytes).unwrap();
    };
    for (magic, bytes) in [(b"EVRNOW02", 1 << 30), (b"EVRNOW01", 1 << 30), (b"EVRNOW02", 4096)] {
        write(magic, bytes);
        let next = recorder(&ring, false);
        assert!(NowReader::open_beside(&Reader::open(&ring).unwrap()).unwrap().is_some(), "{bytes}");
        drop(next);
        assert!(names_in(directory.path()).is_empty());
    }
    // One that has no tables removes them.
    write(b"EVRNOW02", 1 << 30);
    let description = ContentDescription::new(300, "OTHER");
    drop(Recorder::builder(description).config(&ring).compact(true).shifts(15, 21).prefault(false).build().unwrap());
    assert!(names_in(directory.path()).is_empty());
}

#[test]
fn verbs_that_are_given_tables_say_what_they_are_and_name_the_ring() {
    let directory = directory();
    let recorder = recorder(&directory.path().join("shop"), false);
    for verb in ["info", "open", "capture", "watch", "summary", "export", "snapshot", "top"] {
        let output: &[&str] = match verb {
            "capture" | "snapshot" => &["-o", "/dev/null"],
            "export" => &["--format", "jsonl"],
            "top" => &["--once"],
            _ => &[],
        };
        run_in!(directory.path(), verb, "shop.now", output)
            .warns("has the tables of the present of a recorder, and is no ring; name the ring: shop\n")
            .ends(4);
    }
    let listed = run_in!(directory.path(), "list", "--json");
    assert_eq!((listed.json()["rings"].list().len(), listed.err.as_str()), (1, ""));
    let fitting =
        run_in!(directory.path(), "capture", "shop*", "--now", "-o", &directory.path().join("t.evc"), "--json");
    assert_eq!(fitting.json()["rings"].list().len(), 1, "{fitting:?}");
    drop(recorder);
}

#[test]
fn damaged_cells_are_answered_like_any_others() {
    let (_directory, [ring]) = places(["shop"]);
    drop(recorder(&ring, true));
    let file = File::options().write(true).open(now_path(&ring)).unwrap();
    let write = |offset: u64, words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, offset).unwrap();
    };
    // Two thousand span, task and lock cells may be looked at.
    write(0x20, &[2000, 2000]);
    write(0x50, &[2000]);
    let mut random = 88172645463325252_u64;
    for (name, mask) in [("any words", u64::MAX), ("ids of any cells", (1 << 52) - 1), ("few ids", 0xfff)] {
        // Threads, locks, and spans lie one after the other.
        for offset in [0x1000, 0x20_0000, 0x40_0000] {
            let mut words = Vec::new();
            for at in 0..2000 * 8_u64 {
                // xorshift64
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                words.push(if at % 8 < 2 { random & mask } else { random });
            }
            write(offset, &words);
        }
        for words in [&["open", "--json"][..], &["open", "--all"], &["open"], &["tasks", "--json"], &["top", "--once"]]
        {
            let shown = run(&[&words[..1], &[argument(&ring)], &words[1..]].concat());
            assert!(shown.code == Some(0) && !shown.err.contains("panicked"), "{name}, {words:?}: {shown:?}");
        }
    }
}
