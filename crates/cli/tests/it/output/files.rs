//! Tests of `--output` of `snapshot`, `capture` and `export`: where it may lead, and which files the program never
//! replaces.

use crate::fixtures::*;
use std::os::unix::fs::{FileTypeExt as _, symlink};

fn recorder_at(path: &Path, events: u64) -> Recorder {
    let recorder = exec_ring(path);
    (0..events).for_each(|_| assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b""), 0));
    recorder
}

/// Returns the three commands that write a file, each without its `-o` option.
fn verbs(ring: &Path) -> [Vec<&str>; 3] {
    let ring = argument(ring);
    [vec!["snapshot", ring], vec!["capture", ring, "--now"], vec!["export", ring, "--format", "jsonl"]]
}

#[test]
fn a_link_is_not_replaced_and_not_followed() {
    let (directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 2);
    let (precious, link, dangling) =
        (place(&directory, "precious"), place(&directory, "link"), place(&directory, "dangling"));
    fs::write(&precious, "precious").unwrap();
    symlink(&precious, &link).unwrap();
    symlink(place(&directory, "nothing"), &dangling).unwrap();
    for verb in verbs(&ring) {
        for link in [&link, &dangling] {
            let run = run!(&verb, "-o", link, "--force").ends(14);
            let expected = format!(
                "error: cannot write {}: it is a symbolic link, which is not replaced; name the file that it leads to\n",
                link.display()
            );
            assert_eq!(run.err, expected);
            assert!(fs::symlink_metadata(link).unwrap().is_symlink());
        }
        let run = run!(&verb, "-o", directory.path(), "--force").ends(14);
        assert!(run.err.ends_with("it is a directory; name a file in it\n"), "{run:?}");
    }
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(!place(&directory, "nothing").exists());
}

#[test]
fn a_pipe_is_written_to_and_stays_a_pipe() {
    let (directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 2);
    let pipe = place(&directory, "pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for verb in verbs(&ring) {
        let output = pipe.clone();
        let reader = thread::spawn(move || fs::read(output).unwrap());
        // A pipe is written to with and without --force.
        run!(&verb, "-o", &pipe).ends(0).warns(format!("written to {}", argument(&pipe)));
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert!(!reader.join().unwrap().is_empty());
    }
    // If a pipe is named in place of a ring, the program fails immediately. It does not wait for a writer of the
    // pipe.
    for verb in ["export", "summary"] {
        run!(verb, &pipe).ends(4);
    }
}

#[test]
fn a_path_of_stdout_means_stdout_even_if_that_is_a_file() {
    let (directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 2);
    for verb in verbs(&ring) {
        for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            let file = place(&directory, "redirected");
            let mut command = program!(&verb, "-o", path);
            command.stdout(File::create(&file).unwrap());
            finish(command).ends(0).warns("written to stdout");
            assert!(fs::metadata(&file).unwrap().len() > 0);
        }
    }
}

#[test]
fn a_device_stays_a_device() {
    let (_directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 2);
    for verb in verbs(&ring) {
        // /dev/full is a device that lets programs write to it, but each write fails with "no space left". (The test
        // does not use /dev/null: a fault in the program could replace it, and other programs need it.)
        run!(&verb, "-o", "/dev/full", "--force").ends(12);
        assert!(fs::symlink_metadata("/dev/full").unwrap().file_type().is_char_device());
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let (_directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 30_000);
    for verb in verbs(&ring) {
        let mut child = Command::new(PROGRAM)
            .args(&verb)
            .args(["-o", "-"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut reported = String::new();
        child.stderr.take().unwrap().read_to_string(&mut reported).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{verb:?}: {reported}");
        assert!(!reported.contains("error"), "{reported}");
    }
}

#[test]
fn a_range_that_ends_before_it_begins_is_a_mistake() {
    let (directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 30);
    let file = place(&directory, "saved");
    run!("snapshot", &ring, "-o", &file, "--from", "20", "--to", "10").ends(2);
    assert!(!file.exists());
}
