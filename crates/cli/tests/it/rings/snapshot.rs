//! `eventring snapshot`.

use crate::fixtures::*;
use crate::program::memory_of;
use eventring::reader::{Next, Seek, SnapshotOptions};
use std::os::unix::fs::PermissionsExt as _;

fn recorder_at(path: &Path, events: u64) -> Recorder {
    let recorder = exec_ring(path);
    (1..=events).for_each(|i| assert_eq!(recorder.record(ExecEvent::TxnEnd as u16, [0, i, 0, 0], b""), i));
    recorder
}

fn transactions(path: &Path) -> Vec<u64> {
    let mut cursor = Reader::open_typed::<ExecEvent>(path).unwrap().cursor();
    cursor.seek(Seek::Oldest);
    std::iter::from_fn(|| match cursor.next() {
        Next::Event(event) => Some(event.content_ext[1]),
        _ => None,
    })
    .collect()
}

#[test]
fn a_live_ring_is_saved_and_reported() {
    let (directory, [ring, file]) = places(["ring", "saved"]);
    let _recorder = recorder_at(&ring, 5);
    let run = run!("snapshot", &ring, "-o", &file);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""));
    let size = fs::metadata(&file).unwrap().len();
    let reported =
        format!("5 events in {:.1} KiB (134 MiB of ring image) written to {}\n", size as f64 / 1024.0, file.display());
    assert_eq!(run.err, reported);
    assert_eq!(transactions(&file), [1, 2, 3, 4, 5]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    // Only the ring and the snapshot are in the directory.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_part_is_saved_with_what_was_lost_of_it() {
    let (_directory, [ring, file]) = places(["ring", "saved"]);
    let recorder = recorder_at(&ring, 0);
    let capacity = recorder.geometry().descriptor_capacity();
    for i in 1..=2 * capacity {
        recorder.record(ExecEvent::TxnEnd as u16, [0, i, 0, 0], b"");
    }
    let from = (capacity - 9).to_string();
    let to = (2 * capacity - 5).to_string();
    let part = ["snapshot", argument(&ring), "-o", argument(&file), "--from", &from, "--to", &to];
    let saved = run!(&part, "--json", "--compression", "1").json();
    assert_eq!(saved["events"].number() + saved["lost"].number(), capacity + 5);
    // The snapshot of a live ring leaves out the oldest events, because the writer could overwrite them at any
    // moment.
    assert!(saved["lost"].number() >= 10, "{saved}");
    assert_eq!((&saved["expired"], &saved["last_seqno"]), (&json!(0), &json!(2 * capacity - 5)));
    assert_eq!(saved["file"], argument(&file));
    assert_eq!(transactions(&file).last(), Some(&(2 * capacity - 5)));
    let text = run!(&part, "--force");
    let lost = format!("of the sequence numbers {from} to {to} were not in the ring any more");
    assert!(text.err.replace(',', "").contains(&lost), "{}", text.err);
    let info = run!("info", "--json", &file).json();
    assert_eq!(info["extension"]["counters"]["snapshot_lost"], saved["lost"]);
    let info = run!("info", &file).out;
    assert!(info.contains("the others are not in the snapshot"), "{info}");
}

#[test]
fn a_snapshot_from_a_seqno_that_was_not_handed_out_yet_warns() {
    let (_directory, [ring, file]) = places(["ring", "saved"]);
    let _recorder = recorder_at(&ring, 5);
    let saved = run!("snapshot", &ring, "-o", &file, "--from", "500").ends(0);
    let warning = "warning: the snapshot is empty: --from is 500, and the last sequence number of the ring is 5\n";
    assert!(saved.err.starts_with(warning), "{saved:?}");
    assert_eq!(transactions(&file), [0; 0]);
    let last = run!("snapshot", &ring, "-o", &file, "--force", "--from", "5");
    assert!(!last.err.contains("warning"), "{last:?}");
}

#[test]
fn a_file_that_exists_is_replaced_only_by_force() {
    let (_directory, [ring, file]) = places(["ring", "saved"]);
    let _recorder = recorder_at(&ring, 2);
    fs::write(&file, "precious").unwrap();
    let run = run!("snapshot", &ring, "-o", &file);
    assert_eq!(run.code, Some(14));
    assert_eq!(
        run.err,
        format!("error: cannot write {}: it exists; choose another name, or --force\n", file.display())
    );
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    run!("snapshot", &ring, "-o", &file, "--force").ends(0);
    assert_eq!(transactions(&file), [1, 2]);
}

#[test]
fn without_a_name_it_is_called_after_the_ring() {
    let (directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 3);
    let mut command = program!("snapshot", &ring, "--json");
    command.current_dir(directory.path());
    assert_eq!(program::finish(command).json()["file"], "ring.snapshot.zst");
    assert_eq!(transactions(&place(&directory, "ring.snapshot.zst")), [1, 2, 3]);
}

#[test]
fn it_can_go_through_a_pipe() {
    let (directory, [ring]) = places(["ring"]);
    let _recorder = recorder_at(&ring, 3);
    let output = program!("snapshot", &ring, "-o", "-").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let file = place(&directory, "saved");
    fs::write(&file, output.stdout).unwrap();
    assert_eq!(transactions(&file), [1, 2, 3]);
    run!("snapshot", &ring, "-o", "-", "--json").ends(2);
}

#[test]
fn a_snapshot_of_a_snapshot_is_the_same_snapshot() {
    let (_directory, [file]) = places(["saved"]);
    run!("snapshot", program::KEPT, "-o", &file, "--level", "19").ends(0);
    let image = |path: &std::path::Path| zstd::decode_all(&fs::read(path).unwrap()[..]).unwrap();
    let (mut kept, copy) = (image(program::KEPT.as_ref()), image(&file));
    // The kept snapshot has version 1.0 of the header's extension. The copy has the version that this build uses. All
    // other bytes must be equal.
    let version = eventring::internal::layout::extension::VERSION_OFFSET;
    kept[version..version + 8].copy_from_slice(&eventring::internal::layout::extension::VERSION.to_le_bytes());
    assert!(copy == kept, "the bytes differ");
}

#[test]
fn a_snapshot_of_a_large_ring_takes_little_memory() {
    const PAYLOADS_MIB: usize = 256;
    const MEMORY_KIB_MAX: u64 = 64 << 10;
    // The output, and with it the temporary files, are on a disk.
    let (directory, disk) = (directory(), tempfile::tempdir().unwrap());
    let (ring, file) = (place(&directory, "ring"), place(&disk, "saved"));
    let recorder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>())
        .config(format!("{}:18:29", ring.display()))
        .prefault(false)
        .build()
        .unwrap();
    let payload: Vec<u8> = (0..2000_u32).map(|n| ((n * n) >> 7) as u8).collect();
    let events = (PAYLOADS_MIB << 20) / payload.len();
    for _ in 0..events {
        assert_ne!(recorder.record(ExecEvent::TxnEnd as u16, [0; 4], &payload), 0);
    }
    let (has_succeeded, memory_kib) = memory_of(program!("snapshot", &ring, "-o", &file, "--compression", "1"));
    assert!(has_succeeded);
    assert!(memory_kib > 0 && memory_kib <= MEMORY_KIB_MAX, "{memory_kib} KiB");
    let saved = Reader::open(&file).unwrap();
    assert_eq!(saved.info().last_seqno, events as u64);
    // No temporary file is left.
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 1);
}

/// Makes a recorder of spans with two shards, and records a span in each.
fn two_shards(path: &Path) -> PerfRecorder {
    let recorder = spans_in(path).shifts(15, 21).shards(2).all_shards_at_build(true).build().unwrap();
    let dispatch = tracing::Dispatch::new(RecorderSubscriber::new(recorder.clone()));
    let work = || tracing::dispatcher::with_default(&dispatch, || tracing::info_span!("work").in_scope(|| ()));
    work();
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
    recorder
}

#[test]
fn a_recorder_with_several_shards_is_refused_with_the_command_that_saves_them_all() {
    let (_directory, [ring, file]) = places(["spans", "saved"]);
    let recorder = two_shards(&ring);
    assert_eq!(recorder.shard_count(), 2);
    let refused = run!("snapshot", &ring, "-o", &file).ends(2);
    let expected = format!(
        "error: {ring} is a recorder of 2 shards, and a snapshot holds one ring; save all of them with `eventring capture \
         {ring} --now -o spans.evc`\n",
        ring = ring.display()
    );
    assert_eq!(refused.err, expected);
    assert!(!file.exists());
    // The control: the command does it.
    let captured = run!("capture", &ring, "--now", "-o", &file, "--json").json();
    assert_eq!(captured["rings"].list().len(), 2);
}

#[test]
fn a_snapshot_of_one_shard_of_several_is_known_as_such() {
    let (_directory, [ring, file]) = places(["spans", "saved"]);
    let recorder = two_shards(&ring);
    // Only a program can take it.
    let out = fs::File::create(&file).unwrap();
    Reader::open(&ring).unwrap().write_snapshot(out, &SnapshotOptions::new()).unwrap();
    let info = run!("info", &file);
    assert!(info.out.contains("snapshot of shard 0 of 2 of a recorder: events of the others are not here"), "{info:?}");
    let shards = run!("info", &file, "--json").json()["extension"]["shards"].clone();
    assert_eq!(shards, json!({ "index": 0, "count": 2, "limit": 2, "not_made": 0 }));
    for verb in ["summary", "export"] {
        let done = run(&[verb, argument(&file), "-o", "/dev/null"][..if verb == "export" { 4 } else { 2 }]);
        assert!(done.err.contains("shard 1"), "{verb}: {done:?}");
    }
    drop(recorder);
}

#[test]
fn a_snapshot_says_when_it_was_taken_and_so_does_its_copy() {
    let (_directory, [ring, file, copy]) = places(["ring", "saved", "copy"]);
    let recorder = recorder_at(&ring, 3);
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let before = now();
    run!("snapshot", &ring, "-o", &file).ends(0);
    let after = now();
    drop(recorder);
    run!("snapshot", &file, "-o", &copy).ends(0);
    for saved in [&file, &copy] {
        let taken = run!("info", saved, "--json").json()["extension"]["snapshot_ts_ns"].number();
        // The clocks of two processes may differ a little.
        assert!((before - 1_000_000..=after + 1_000_000).contains(&taken), "{before} {taken} {after}");
        assert!(run!("info", saved).out.contains(", taken on 20"), "{saved:?}");
    }
    // The kept snapshot does not say when it was made.
    let kept = run!("info", program::KEPT, "--json").json();
    assert!(kept["extension"]["snapshot_ts_ns"].is_null());
}

/// A plain copy of shard 0 alone: its header says that there were others.
#[test]
fn a_copy_of_one_shard_of_several_says_what_is_not_there() {
    let (_directory, [ring, copy]) = places(["spans", "copy"]);
    let recorder = two_shards(&ring);
    recorder.keep(true);
    drop(recorder);
    fs::copy(&ring, &copy).unwrap();
    let info = run!("info", &copy);
    assert!(info.out.contains("; those of 1 shard are not here"), "{}", info.out);
    assert!(info.out.contains("is not beside this file: it was removed or not copied"), "{}", info.out);
    run!("summary", &copy, "--strict").fails(16, "in shards that could not be opened");
    // The control: beside its shard, the ring is whole.
    let whole = run!("info", &ring);
    assert!(!whole.out.contains("not here"), "{}", whole.out);
    run!("summary", &ring, "--strict").ends(0);
}
