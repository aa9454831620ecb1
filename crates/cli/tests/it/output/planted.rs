//! Somebody has put links, pipes or files in the places where `capture`, `snapshot` and `export` write. The program
//! neither follows these links nor writes into these files. It also never overwrites a file that it reads.

use crate::fixtures::*;
use crate::triggers::{manifest_path, watch_before};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, symlink};

/// A live ring of two events, and a precious file.
struct Scene {
    directory: TempDir,
    ring: PathBuf,
    precious: PathBuf,
    recorder: Recorder,
}

impl Scene {
    fn new() -> Self {
        let (directory, [ring, precious]) = places(["ring", "precious"]);
        let recorder = typed_in::<ExecEvent>(&ring).compact(true).shifts(15, 21).build().unwrap();
        (0..2).for_each(|_| assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b""), 0));
        fs::write(&precious, "precious").unwrap();
        Self { directory, ring, precious, recorder }
    }

    /// Returns the three commands that write a file, each without its `-o` option.
    fn verbs(&self) -> [Vec<&str>; 3] {
        let ring = argument(&self.ring);
        [vec!["snapshot", ring], vec!["capture", ring, "--now"], vec!["export", ring, "--format", "jsonl"]]
    }

    fn assert_nothing_is_harmed(&self, what: &str) {
        assert_eq!(fs::read(&self.precious).unwrap(), b"precious", "{what}");
        assert!(!place(&self.directory, "nothing").exists(), "{what}");
        assert_ring_is_whole(&self.ring, 2);
        let names = fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| name.as_encoded_bytes().starts_with(b".")).collect();
        assert_eq!(left.len(), 0, "{what}: {left:?}");
    }
}

fn assert_ring_is_whole(path: &Path, events: u64) {
    assert_eq!(Reader::open(path).unwrap().info().last_seqno, events, "{}", path.display());
}

const PLANTS: [&str; 5] = ["symlink", "dangling symlink", "hard link", "fifo", "directory"];

/// Puts a link, a pipe or a directory at `at`, as an attacker would. If it is a pipe, also opens and returns it, so
/// that a writer of the pipe does not wait for a reader.
fn plant(scene: &Scene, what: &str, at: &Path) -> Option<File> {
    match what {
        "symlink" => symlink(&scene.precious, at).unwrap(),
        "dangling symlink" => symlink(place(&scene.directory, "nothing"), at).unwrap(),
        "hard link" => fs::hard_link(&scene.precious, at).unwrap(),
        "directory" => fs::create_dir(at).unwrap(),
        "fifo" => {
            rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            return Some(File::options().read(true).write(true).open(at).unwrap());
        }
        other => panic!("{other}"),
    }
    None
}

fn uproot(at: &Path) {
    if fs::symlink_metadata(at).is_ok_and(|it| it.is_dir()) { fs::remove_dir(at) } else { fs::remove_file(at) }
        .unwrap();
}

#[test]
fn a_rotated_capture_writes_through_nothing_that_stands_in_the_place_of_its_files() {
    let scene = Scene::new();
    let (ring, output) = (argument(&scene.ring).to_owned(), place(&scene.directory, "t.evc"));
    let first = place(&scene.directory, "t.0001.evc");
    for options in [&["--force"][..], &[]] {
        let arguments =
            [&["capture", &ring, "--now", "--rotate-size", "1M", "-o", argument(&output)], options].concat();
        for what in PLANTS {
            let _end = plant(&scene, what, &first);
            let planted = fs::symlink_metadata(&first).unwrap();
            let run = run(&arguments);
            scene.assert_nothing_is_harmed(what);
            let now = fs::symlink_metadata(&first).unwrap();
            if what == "hard link" && options == ["--force"] {
                // The program has replaced the hard link by a new file. The old file is still there under its other
                // name.
                assert_eq!((run.code, now.is_file(), now.nlink()), (Some(0), true, 1), "{run:?}");
                assert_eq!(CaptureFile::open(&first).unwrap().events().count(), 2);
            } else {
                assert_eq!((run.code, now.ino()), (Some(14), planted.ino()), "{what}: {run:?}");
                assert!(run.err.starts_with(&format!("error: cannot write {}: it ", first.display())), "{run:?}");
            }
            uproot(&first);
        }
        // This is the control: if nothing was planted, the program makes its file here.
        run(&arguments).ends(0);
        assert_eq!(CaptureFile::open(&first).unwrap().events().count(), 2);
        uproot(&first);
    }
}

#[test]
fn a_link_that_waits_for_a_later_file_of_a_row_ends_the_capture_and_what_is_before_it_stays() {
    let scene = Scene::new();
    let output = place(&scene.directory, "t.evc");
    plant(&scene, "symlink", &place(&scene.directory, "t.0003.evc"));
    let ended =
        live!("capture", &scene.ring, "--force", "--rotate-every", "50ms", "--duration", "3s", "-o", &output).end();
    scene.assert_nothing_is_harmed("a later file");
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let events: usize = ["t.0001.evc", "t.0002.evc"]
        .map(|name| CaptureFile::open(&place(&scene.directory, name)).unwrap())
        .iter()
        .map(|file| file.events().count())
        .sum();
    assert_eq!(events, 2);
}

#[test]
fn a_file_that_has_another_name_is_left_to_that_name() {
    let scene = Scene::new();
    let output = place(&scene.directory, "out");
    for verb in scene.verbs() {
        plant(&scene, "hard link", &output);
        run!(&verb, "-o", &output, "--force").ends(0);
        scene.assert_nothing_is_harmed(verb[0]);
        assert!(fs::metadata(&output).unwrap().len() > 0);
        uproot(&output);
    }
}

#[test]
fn what_is_planted_between_look_and_open_is_not_written_through() {
    let scene = Scene::new();
    let (output, first) = (place(&scene.directory, "out"), place(&scene.directory, "out.0001"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // This thread exchanges files and links as fast as it can, under both names to which the program writes.
            for at in [&output, &first].into_iter().cycle() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let staged = place(&scene.directory, "staged");
                let _ = fs::remove_file(&staged);
                symlink(&scene.precious, &staged).unwrap();
                let _ = fs::rename(&staged, at);
                fs::write(&staged, "old").unwrap();
                let _ = fs::rename(&staged, at);
            }
        });
        let mut codes = Vec::new();
        for _ in 0..15 {
            for verb in scene.verbs() {
                let rotated = if verb[0] == "capture" { &["--rotate-size", "1M"][..] } else { &[] };
                for options in [&[][..], rotated] {
                    codes.push(run!(&verb, "-o", &output, "--force", options).code);
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
        // Each run ends in one of two ways: either it found a file and succeeded, or it found a link and refused to
        // write.
        assert!(codes.iter().all(|code| [Some(0), Some(14)].contains(code)), "{codes:?}");
    });
    let _ = fs::remove_file(place(&scene.directory, "staged"));
    scene.assert_nothing_is_harmed("a race");
}

fn assert_refused(run: &Run, path: &Path) {
    assert_eq!(run.code, Some(14), "{run:?}");
    // The error is the last line. A warning about other shards may come before it.
    let last = run.err.lines().last().unwrap();
    assert!(last.starts_with(&format!("error: cannot write {}: ", path.display())), "{run:?}");
}

#[test]
fn a_ring_is_not_written_over_by_what_is_read_of_it() {
    let scene = Scene::new();
    let link = place(&scene.directory, "another-name");
    fs::hard_link(&scene.ring, &link).unwrap();
    for verb in scene.verbs() {
        for output in [&scene.ring, &link] {
            assert_refused(&run!(&verb, "--force", "-o", output), output);
            assert_ring_is_whole(&scene.ring, 2);
        }
        // The program does not overwrite its input through stdout either. Here stdout is the ring that the program
        // reads.
        let out = File::options().append(true).open(&scene.ring).unwrap();
        let run = program::finish({
            let mut command = program!(&verb, "-o", "-");
            command.stdout(out);
            command
        });
        assert!(run.err.starts_with("error: cannot write stdout: "), "{run:?}");
    }
    // The same holds for every ring of several.
    let other = Scene::new();
    for verb in ["capture", "export"] {
        for stdout in [&scene.ring, &other.ring] {
            let mut command = program!(verb, &scene.ring, &other.ring, "--force", "-o", "-");
            if verb == "capture" {
                command.arg("--now");
            } else {
                command.args(["--format", "jsonl"]);
            }
            command.stdout(File::options().append(true).open(stdout).unwrap());
            let run = program::finish(command).ends(14);
            assert!(run.err.starts_with("error: cannot write stdout: "), "{run:?}");
            [&scene, &other].iter().for_each(|scene| assert_ring_is_whole(&scene.ring, 2));
        }
    }
    // Here the ring has the name that a rotated capture would give to its first file.
    let rows_ring = place(&scene.directory, "t.0001.evc");
    fs::rename(&scene.ring, &rows_ring).unwrap();
    let output = place(&scene.directory, "t.evc");
    assert_refused(&run!("capture", &rows_ring, "--now", "--rotate-size", "1M", "--force", "-o", &output), &rows_ring);
    assert_ring_is_whole(&rows_ring, 2);
    // The ring still works: its writer records one more event, and a reader finds it.
    scene.recorder.record(ExecEvent::TxnEnd as u16, [0; 4], b"");
    assert_ring_is_whole(&rows_ring, 3);
}

#[test]
fn a_capture_is_not_written_over_by_its_export() {
    let scene = Scene::new();
    let capture = place(&scene.directory, "t.evc");
    run!("capture", &scene.ring, "--now", "-o", &capture).ends(0);
    let export = ["export", argument(&capture), "--format", "jsonl", "--force", "-o", argument(&capture)];
    assert_refused(&run(&export), &capture);
    assert_eq!(CaptureFile::open(&capture).unwrap().events().count(), 2);
    run!("capture", &scene.ring, "--rotate-every", "1ms", "--duration", "200ms", "--force", "-o", &capture).ends(0);
    let [one, two] = ["t.0001.evc", "t.0002.evc"].map(|name| place(&scene.directory, name));
    for output in [&one, &two] {
        assert_refused(&run!("export", &one, &two, "--format", "jsonl", "--force", "-o", output), output);
        assert!(CaptureFile::open(output).is_ok());
    }
}

#[test]
fn no_shard_is_written_over_neither_one_that_is_there_nor_the_place_of_one_that_comes() {
    let (directory, [perf]) = places(["perf"]);
    let recorder = spans_in(&perf).shifts(15, 21).tables_shift(16).shards(4).build().unwrap();
    let log = || in_recorder(recorder.clone(), || info!("here"));
    log();
    thread::scope(|scope| {
        scope.spawn(log);
    });
    assert!(place(&directory, "perf.1").exists() && !place(&directory, "perf.3").exists());
    let name = argument(&perf);
    for verb in [vec!["capture", name, "--now"], vec!["export", name]] {
        for shard in ["perf", "perf.1", "perf.3"] {
            let output = place(&directory, shard);
            let existed = output.exists();
            assert_refused(&run!(&verb, "--force", "-o", &output), &output);
            assert_eq!(output.exists(), existed, "{shard}");
            if existed {
                assert!(Reader::open(&output).is_ok(), "{verb:?} {shard}");
            }
        }
    }
    // No shard can have this name.
    let free = place(&directory, "perf.evc");
    run!("capture", name, "--now", "-o", &free).ends(0);
    assert!(!fs::metadata(&free).unwrap().file_type().is_fifo());
}

#[test]
fn no_ring_that_a_living_process_writes_is_replaced_even_if_nobody_reads_it() {
    let scene = Scene::new();
    let read = Scene::new();
    for verb in read.verbs() {
        assert_refused(&run!(&verb, "--force", "-o", &scene.ring), &scene.ring);
        scene.assert_nothing_is_harmed("a living ring that is no input");
    }
    // When the ring's writer is gone, the ring is a file like any other, and may be replaced.
    scene.recorder.keep(true);
    drop(scene.recorder);
    run!(&read.verbs()[0][..], "--force", "-o", &scene.ring).ends(0);
}

#[test]
fn no_row_of_files_is_made_beside_a_device_or_a_pipe() {
    let scene = Scene::new();
    let pipe = place(&scene.directory, "pipe");
    let _end = plant(&scene, "fifo", &pipe);
    for output in [Path::new("/dev/null"), &pipe] {
        run!("capture", &scene.ring, "--now", "--rotate-size", "4K", "-o", output).fails(14, "is a device or a pipe");
        assert!(!Path::new("/dev/null.0001").exists());
        scene.assert_nothing_is_harmed("a row beside a device");
    }
}

#[test]
fn the_manifest_of_a_triggered_file_is_written_through_nothing_that_stands_in_its_place() {
    for what in ["symlink", "dangling symlink", "hard link", "fifo"] {
        let scene = Scene::new();
        let (ring, names) = (place(&scene.directory, "watched"), place(&scene.directory, "t-{n}.evc"));
        let file = place(&scene.directory, "t-1.evc");
        let manifest = manifest_path(&file);
        let end = plant(&scene, what, &manifest);
        // Nobody reads the pipe.
        drop(end);
        let live = watch_before(&ring, &["--on", "signal", "--after", "1ms", "--force", "-o", argument(&names)]);
        let _recorder = program::exec_ring(&ring);
        signal(&live.child, Signal::USR1);
        wait_while(|| !file.exists());
        live.interrupt();
        let ended = live.end();
        scene.assert_nothing_is_harmed(what);
        let is_replaced = what == "hard link";
        assert_eq!(ended.code, Some(if is_replaced { 0 } else { 14 }), "{what}: {ended:?}");
        assert_eq!(fs::symlink_metadata(&manifest).unwrap().is_file(), is_replaced, "{what}");
    }
}
