//! Traces of small captures. The tests decode the packets, and babeltrace2, if it is installed, reads whole traces.

use super::{may_have_file, write_with_uuid};
use crate::any_capture::everything;
use crate::any_capture::{any_element, capture_of, files_of};
use crate::{Format, export_files};
use eventring::reader::GapCause;
use eventring::schema::perf::PerfEvent;
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::CaptureFixture;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::EntryContent;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const UUID: [u8; 16] = *b"0123456789abcdef";

/// Exports a capture into a directory. Returns the files by name, and the problems.
fn exported_to(directory: &Path, capture: &CaptureFile) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let recording = CaptureRecording::new(capture).unwrap();
    let counts = write_with_uuid(&recording, &mut directory.to_path_buf(), UUID).unwrap();
    let contents = files_of(directory);
    assert!(contents.keys().all(|name| may_have_file(name)));
    (contents, counts.problems)
}

fn exported(capture: &CaptureFile) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    exported_to(tempfile::tempdir().unwrap().path(), capture)
}

/// A packet of a stream.
#[derive(Debug, PartialEq)]
struct Packet {
    begin_nanos: u64,
    end_nanos: u64,
    /// The number of events that were lost up to the end of the packet.
    lost: u64,
    event_bytes: usize,
}

/// Reads the packets of a stream, and checks what each of them says about itself.
fn packets(mut bytes: &[u8]) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    let mut ids = None;
    while !bytes.is_empty() {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!((&bytes[..4], &bytes[4..20]), (&0xc1fc_1fc1_u32.to_le_bytes()[..], &UUID[..]));
        assert_eq!(*ids.get_or_insert(&bytes[20..32]), &bytes[20..32]);
        let [begin_nanos, end_nanos, content_bits, packet_bits, index, lost] = [32, 40, 48, 56, 64, 72].map(number);
        assert_eq!((content_bits, packet_bits % 8, index), (packet_bits, 0, packets.len() as u64));
        let last = packets.last();
        assert!(begin_nanos <= end_nanos && last.is_none_or(|last| last.end_nanos <= begin_nanos && last.lost <= lost));
        let (packet, rest) = bytes.split_at((packet_bits / 8) as usize);
        // The context ends with the number of the process, and the name of the ring.
        let name_bytes = packet[84..].iter().position(|byte| *byte == 0).unwrap() + 1;
        packets.push(Packet { begin_nanos, end_nanos, lost, event_bytes: packet.len() - 84 - name_bytes });
        bytes = rest;
    }
    packets
}

#[test]
fn metadata_and_packets_of_everything() {
    let (files, problems) = exported(&everything());
    assert_eq!(problems, [""; 0]);
    let mut shown = String::new();
    for (name, bytes) in &files {
        match name.as_str() {
            "metadata" => shown.push_str(std::str::from_utf8(bytes).unwrap()),
            _ => packets(bytes).iter().for_each(|packet| shown.push_str(&format!("{name}: {packet:?}\n"))),
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_loss_is_a_packet_between_the_events_around_it() {
    let mut made = CaptureFixture::new();
    made.gap(1, 5, GapCause::OverwrittenBefore);
    made.event(1, 20, 1000, [0; 4], b"");
    made.event(1, 20, 1100, [0; 4], b"");
    made.gap(1, 2, GapCause::Overwritten);
    made.gap(1, 1, GapCause::NeverCommitted);
    made.gap(1, 100, GapCause::Skipped);
    made.event(1, 20, 1200, [0; 4], b"");
    made.gap(1, 7, GapCause::Overwritten);
    made.span(PerfEvent::SpanClose, 1500, 1, 1, 1);
    let (files, _) = exported(&made.open());
    // The ring was made at 500. What had been overwritten before is no loss.
    let expected = [(1000, 1100, 0), (1100, 1200, 3), (1200, 1200, 3), (1200, 1500, 10)];
    let packets = packets(&files["stream_1"]);
    let times: Vec<_> = packets.iter().map(|packet| (packet.begin_nanos, packet.end_nanos, packet.lost)).collect();
    assert_eq!(times, expected);
    let has_events: Vec<bool> = packets.iter().map(|packet| packet.event_bytes > 0).collect();
    assert_eq!(has_events, [true, false, true, false]);
}

#[test]
fn events_of_earlier_times_go_to_further_streams_until_there_are_too_many() {
    let mut made = CaptureFixture::new();
    for nanos in [5000, 4000, 4500, 6000, 3000] {
        made.event(1, 20, nanos, [0; 4], b"");
    }
    let (files, problems) = exported(&made.open());
    let ends = ["stream_1", "stream_1_1", "stream_1_2"].map(|name| packets(&files[name]).pop().unwrap());
    assert_eq!(ends.map(|packet| (packet.begin_nanos, packet.end_nanos)), [(5000, 6000), (4000, 4500), (3000, 3000)]);
    assert_eq!(problems, [""; 0]);

    let mut made = CaptureFixture::new();
    (0..20).for_each(|number| made.event(1, 20, 5000 - number, [0; 4], b""));
    made.event(1, 20, u64::MAX, [0; 4], b"");
    let (files, problems) = exported(&made.open());
    assert_eq!(files.len(), 1 + 16);
    assert!(problems[0].starts_with("the ring shop-exec has 5 events whose times fall too often"), "{problems:?}");
    let moved = packets(&files["stream_1_15"]).pop().unwrap();
    assert_eq!((moved.begin_nanos, moved.end_nanos), (4985, 4985));
    assert_eq!(packets(&files["stream_1"]).pop().unwrap().end_nanos, i64::MAX as u64 - 1);
}

#[test]
fn only_names_of_a_trace_are_names_of_its_files() {
    let of_trace = ["metadata", "stream_0", "stream_12_3"];
    let others = ["", "stream_", "stream_1_", "stream_x", "stream_1_2_3", "index", "metadata.old", ".stream_0"];
    assert!(of_trace.into_iter().all(may_have_file) && !others.into_iter().any(may_have_file));
}

#[test]
fn a_directory_needs_its_own_function_and_other_formats_need_theirs() {
    let capture = everything();
    let error = crate::export(&capture, Format::Ctf, crate::View::Thread, &mut io::sink()).unwrap_err();
    assert!(error.to_string().contains("call `export_files`"), "{error}");
    let error = export_files(&capture, Format::Jsonl, &mut PathBuf::new()).unwrap_err();
    assert!(error.to_string().contains("call `export`"), "{error}");
}

/// Returns the number of events that a trace of the capture has, and the number of events that were lost.
fn expected_counts(capture: &CaptureFile) -> (usize, u64) {
    let recording = CaptureRecording::new(capture).unwrap();
    let (mut entries, mut events, mut lost) = (recording.entries(), 0, 0);
    while let Some(entry) = entries.next_entry() {
        match entry.content {
            EntryContent::Perf { record, .. } => {
                let is_left_out = matches!(
                    record.event,
                    Some(PerfEvent::CallSite | PerfEvent::ThreadStarted | PerfEvent::ThreadEnded)
                );
                events += usize::from(!is_left_out);
            }
            EntryContent::Typed { .. } => events += 1,
            EntryContent::Gap(gap) if gap.cause == GapCause::OverwrittenBefore => {}
            EntryContent::Gap(gap) => lost += gap.count,
        }
    }
    (events, lost)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn readers_accept_the_trace_of_any_capture(elements in prop::collection::vec(any_element(), 0..60)) {
        let capture = capture_of(&elements);
        let (events, lost) = expected_counts(&capture);
        let directory = tempfile::tempdir().unwrap();
        let (files, _) = exported_to(directory.path(), &capture);
        let streams = || files.iter().filter(|(name, _)| *name != "metadata").map(|(_, bytes)| packets(bytes));
        prop_assert_eq!(streams().filter_map(|packets| Some(packets.last()?.lost)).sum::<u64>(), lost);

        let Ok(output) = Command::new("babeltrace2").arg(directory.path()).output() else {
            eventring_stress::missing("babeltrace2 is not there; .ci/run installs it");
            return Ok(());
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        prop_assert!(output.status.success(), "{}\n{}", errors, String::from_utf8_lossy(&files["metadata"]));
        prop_assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), events);
    }
}
