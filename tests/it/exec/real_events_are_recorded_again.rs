//! One process records the 136,891 events of a real recording again. Two other processes read them at the same time.

use crate::fixtures::*;
use crate::record_again;
use eventring::reader::Descriptor;

/// The number of events in the published recording.
const EVENTS: u64 = 136_891;
/// The number of events that a thread records before the next thread takes its turn.
const TURN: usize = 50;

/// The recording whose events are recorded again.
#[derive(Clone, Copy)]
enum Recording {
    /// Thirty real blocks, if they are present.
    Published,
    /// Two invented blocks that are kept with the project.
    Kept,
}

impl Recording {
    fn path(self) -> Option<PathBuf> {
        match self {
            Self::Published => real_data::path("emn-30b-15m.snapshot.zst"),
            Self::Kept => Some(concat!(env!("CARGO_MANIFEST_DIR"), "/data/all-exec-events.snapshot.zst").into()),
        }
    }
}

/// Reads the original events, in order.
fn originals(recording: Recording) -> Vec<(Descriptor, Vec<u8>)> {
    let path = recording.path().expect("the parent has seen it");
    let mut cursor = Reader::open_typed::<ExecEvent>(path).unwrap().cursor();
    cursor.seek(Seek::Oldest);
    let mut buffer = Vec::new();
    let mut events = Vec::new();
    while let Next::Event(event) = cursor.next() {
        events.push((event, cursor.payload(&event, &mut buffer).valid().unwrap().to_vec()));
    }
    assert_eq!(events.len() as u64, cursor.reader().info().last_seqno);
    events
}

/// The settings of a run.
#[derive(Clone, Copy)]
struct Run {
    recording: Recording,
    /// Sizes of the ring.
    shifts: (u32, u32),
    /// The number of recording threads. They take turns, so that the events keep their original order.
    threads: u32,
}

/// Records all of the events.
fn write(ring: &Path, run: Run) {
    let originals = originals(run.recording);
    let description = ContentDescription::from_event_type::<ExecEvent>();
    let recorder = Recorder::builder(description).config(ring).shifts(run.shifts.0, run.shifts.1).build().unwrap();
    say("ring");
    wait_for_parent();
    let turns = Mutex::new(originals.chunks(TURN));
    std::thread::scope(|scope| {
        for _ in 0..run.threads {
            scope.spawn(|| {
                loop {
                    let mut turns = turns.lock().unwrap();
                    let Some(events) = turns.next() else { return };
                    for (event, payload) in events {
                        assert_eq!(record_again::pass_on(&recorder, event, payload), event.seqno);
                    }
                    drop(turns);
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(recorder.stats().last_seqno, originals.len() as u64);
    assert_eq!(recorder.stats().record_errors, 0);
    say("done");
}

/// Plays a reader. It reads the ring until the ring has ended, and compares each event with the original. Then it
/// prints how many events it has read and how many it has lost.
fn read(ring: &Path, run: Run) {
    let originals = originals(run.recording);
    let mut cursor = Reader::open_typed::<ExecEvent>(ring).unwrap().cursor();
    cursor.seek(Seek::Seqno(1));
    let mut follower = Follower::new(cursor, WaitStrategy::Adaptive);
    say("ready");
    let (mut read, mut lost, mut expired, mut expected) = (0, 0, 0, 1);
    let mut buffer = Vec::new();
    loop {
        match follower.next_blocking() {
            Followed::Event(event) => {
                assert_eq!(event.seqno, expected);
                expected += 1;
                let (original, original_payload) = &originals[event.seqno as usize - 1];
                // The payload offset and the time may differ from the original, so the comparison leaves them out.
                let like_original = Descriptor {
                    payload_buf_offset: original.payload_buf_offset,
                    record_epoch_nanos: original.record_epoch_nanos,
                    ..event
                };
                assert_eq!(like_original, *original);
                assert!(event.record_epoch_nanos > original.record_epoch_nanos);
                match follower.cursor().payload(&event, &mut buffer).valid() {
                    Some(payload) => {
                        assert!(payload == *original_payload, "payload of seqno {}", event.seqno);
                        read += 1;
                    }
                    None => expired += 1,
                }
            }
            Followed::Gap(gap) => {
                assert_eq!(gap.first_seqno, expected);
                expected += gap.count;
                lost += gap.count;
            }
            Followed::Ended => break,
            Followed::TimedOut => unreachable!(),
        }
    }
    assert_eq!(read + lost + expired, originals.len() as u64);
    say(format_args!("{read} {}", lost + expired));
}

/// Plays this process's part, if it is a child. Otherwise starts a writer and two readers, and returns how many
/// events each reader has read and lost. Returns `None` in a child, and if the recording is not there.
fn perform(test: &str, run: Run) -> Option<Vec<(u64, u64)>> {
    match part().as_deref() {
        Some("writer") => write(&place(), run),
        Some(_) => read(&place(), run),
        None => {
            run.recording.path()?;
            let (_directory, [ring]) = places(["ring"]);
            let mut writer = Talk::told(test, "writer", &ring, "ring");
            let mut readers = [(); 2].map(|()| Talk::start(test, "reader", &ring));
            readers.iter_mut().for_each(|reader| assert_eq!(reader.hear(), "ready"));
            writer.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
            assert_eq!(writer.hear(), "done");
            assert!(writer.end().success());
            let results = readers.map(|mut reader| {
                let printed = reader.hear();
                assert!(reader.end().success());
                let (read, lost) = printed.split_once(' ').unwrap();
                (read.parse().unwrap(), lost.parse().unwrap())
            });
            assert!(!ring.exists());
            return Some(results.to_vec());
        }
    }
    None
}

#[test]
fn both_readers_get_the_original_byte_for_byte() {
    let test = test_name!();
    if let Some(readers) = perform(test, Run { recording: Recording::Published, shifts: (18, 27), threads: 1 }) {
        assert_eq!(readers, [(EVENTS, 0), (EVENTS, 0)]);
    }
}

#[test]
fn so_they_do_when_threads_take_turns() {
    let test = test_name!();
    if let Some(readers) = perform(test, Run { recording: Recording::Published, shifts: (18, 27), threads: 4 }) {
        assert_eq!(readers, [(EVENTS, 0), (EVENTS, 0)]);
    }
}

#[test]
fn in_the_smallest_ring_which_they_lap_twice_each_event_is_read_or_counted_as_lost() {
    let test = test_name!();
    if let Some(readers) = perform(test, Run { recording: Recording::Published, shifts: (16, 27), threads: 2 }) {
        for (read, lost) in readers {
            assert_eq!(read + lost, EVENTS);
            // Even a slow reader reads events: the ring still holds the newest ones after the writer has ended.
            assert!(read >= 1 << 15, "{read}");
        }
    }
}

#[test]
fn so_do_the_events_that_are_kept_with_the_project() {
    let test = test_name!();
    let run = Run { recording: Recording::Kept, shifts: (16, 27), threads: 1 };
    if let Some(readers) = perform(test, run) {
        assert_eq!(readers, [(36, 0), (36, 0)]);
    }
}
