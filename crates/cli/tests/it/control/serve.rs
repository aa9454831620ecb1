//! `eventring serve`: a recording that is served, and one that is recorded once more while clients read.

use crate::fixtures::*;
use eventring::reader::{Descriptor, Next, ReaderErrorKind, Seek};

/// The recordings: a real block, if it is present, and invented ones.
fn recordings() -> Vec<PathBuf> {
    real_data::path("emn-1b-15m.snapshot").into_iter().chain([KEPT.into()]).collect()
}

/// A process that is ended when this value is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

fn serve(file: &Path, socket: &Path, more: &[&str]) -> Serving {
    let mut command = program!("serve", file, "--socket", socket);
    Serving(command.args(more).stderr(Stdio::null()).spawn().unwrap())
}

fn open(name: &Path) -> Reader {
    let start = Instant::now();
    loop {
        match Reader::open_typed::<ExecEvent>(name) {
            Ok(reader) => return reader,
            Err(error) if error.kind() == ReaderErrorKind::NotFound => {}
            Err(error) => panic!("{error}"),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "nobody serves {}", name.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Reads events until there are `count` of them.
fn events(reader: &Reader, count: usize) -> Vec<(Descriptor, Vec<u8>)> {
    let (mut cursor, mut events, mut buffer) = (reader.cursor(), Vec::new(), Vec::new());
    cursor.seek(Seek::Oldest);
    let start = Instant::now();
    while events.len() < count {
        match cursor.next() {
            Next::Event(event) => events.push((event, cursor.payload(&event, &mut buffer).valid().unwrap().to_vec())),
            Next::Gap(gap) => panic!("{gap:?}"),
            Next::NotReady => {
                assert!(start.elapsed() < Duration::from_secs(60), "{} of {count} events came", events.len());
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
    events
}

/// Returns what is equal in a recording and in its replay: everything but the times and the places of payloads.
fn content(events: &[(Descriptor, Vec<u8>)]) -> Vec<(u64, u16, [u64; 4], &[u8])> {
    events.iter().map(|(event, payload)| (event.seqno, event.event_type, event.content_ext, &payload[..])).collect()
}

#[test]
fn a_served_snapshot_is_equal_to_the_file() {
    let directory = directory();
    for (number, file) in recordings().iter().enumerate() {
        let socket = place(&directory, &format!("{number}.sock"));
        let _serving = serve(file, &socket, &[]);
        let original = Reader::open(file).unwrap();
        let count = original.info().last_seqno as usize;
        assert!(count > 20);
        assert_eq!(events(&open(&socket), count), events(&original, count));
    }
}

#[test]
fn a_replayed_recording_is_read_live_by_two_readers_and_is_equal_again() {
    let directory = directory();
    for (number, file) in recordings().iter().enumerate() {
        let socket = place(&directory, &format!("{number}.sock"));
        let original = Reader::open(file).unwrap();
        let count = original.info().last_seqno as usize;
        let originals = events(&original, count);
        let _serving = serve(file, &socket, &["--speed", "30x"]);
        thread::scope(|scope| {
            let read = || events(&open(&socket), count);
            for reader in [scope.spawn(read), scope.spawn(read)] {
                assert!(content(&reader.join().unwrap()) == content(&originals), "{}", file.display());
            }
        });
    }
}

#[test]
fn a_served_capture_has_all_events_of_the_capture() {
    let (_directory, [capture, socket]) = places(["kept.evc", "sock"]);
    run!("capture", KEPT, "-o", &capture, "--now").ends(0);
    let original = Reader::open(KEPT).unwrap();
    let count = original.info().last_seqno as usize;
    let _serving = serve(&capture, &socket, &[]);
    assert!(content(&events(&open(&socket), count)) == content(&events(&original, count)));
    // The verbs of the command line read a socket like a ring.
    let run = run!("watch", &socket, "--from", "oldest", "--count", "3", "--json", "--quiet");
    assert_eq!((run.code, run.json_lines().len()), (Some(0), 3), "{run:?}");
    let run = run!("export", &socket, "-t", "jsonl", "-o", "-").ends(0);
    let events = run.json_lines().into_iter().filter(|line| line["type"] == "typed_event").count();
    assert_eq!(events, count);
}

#[test]
fn a_replayed_capture_of_spans_has_their_names_and_its_rings_have_theirs_from_the_first_client_on() {
    // The rings describe the call sites of other tests in this process, too.
    alone!();
    let (_directory, [ring, capture, socket]) = places(["bazaar", "bazaar.evc", "sock"]);
    let recorder = spans_in(&ring).shifts(15, 21).build().unwrap();
    in_recorder(recorder.clone(), || {
        for _ in 0..20 {
            let _span = info_span!(target: "souk", "haggling").entered();
            thread::sleep(Duration::from_millis(1));
        }
    });
    run!("capture", &ring, "-o", &capture, "--now").ends(0);
    drop(recorder);
    // The replay takes about 20 seconds. Clients can connect before it has begun.
    let mut serving = live!("serve", &capture, "--socket", &socket, "--speed", "0.001x");
    let mut said = String::new();
    std::io::BufRead::read_line(&mut serving.err, &mut said).unwrap();
    assert!(said.contains("is served at"), "{said}");
    let named = format!("{}/bazaar", argument(&socket));
    for (ring, from) in [(argument(&socket), "oldest"), (&named, "oldest"), (&named, "newest")] {
        run!("watch", ring, "--from", from, "--full", "--count", "4", "--quiet").ends(0).shows("haggling");
    }
    serving.interrupt();
    serving.end().ends(0);
    // The export of what is served has the names, too.
    let _serving = serve(&capture, &socket, &[]);
    wait_while(|| !socket.exists());
    run!("export", &named, "-t", "jsonl", "-o", "-").ends(0).shows("haggling");
}
