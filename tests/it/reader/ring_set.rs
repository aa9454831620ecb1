//! A ring set waits for rings that do not exist yet. When a ring has ended, the set goes on with the next ring of the
//! same name. The writers are other processes.

use crate::fixtures::*;
use eventring::reader::{ReaderErrorKind, RingItem};
use eventring::schema::test::TestEvent;

/// A timeout that is never reached.
const LONG: Duration = Duration::from_secs(60);

fn recorder_at(path: &Path) -> Recorder {
    Recorder::builder(ContentDescription::new(300, "THINGS")).config(path).compact(true).shifts(15, 21).build().unwrap()
}

/// Records `count` events whose first extension word is `mark`. The tests recognise the events by it.
fn record(recorder: &Recorder, mark: u64, count: u64) {
    (0..count).for_each(|_| assert_ne!(recorder.record(2, [mark, 0, 0, 0], b"x"), 0));
}

/// Returns the index of the ring from which the set returns its next event, and the mark of that event.
fn mark(rings: &mut RingSet) -> (usize, u64) {
    match rings.next_timeout(LONG) {
        Some(RingItem::Event { ring, event }) => {
            assert_eq!(rings.payload().valid(), Some(&b"x"[..]));
            (ring, event.content_ext[0])
        }
        other => panic!("{other:?}"),
    }
}

/// Reads until all rings have ended.
fn read_to_the_end(rings: &mut RingSet) {
    while rings.next_timeout(LONG).is_some() {}
    assert!(rings.has_ended());
}

#[test]
fn a_ring_that_does_not_exist_yet_is_waited_for_and_is_read_from_its_first_event_on() {
    let test = plays!({
        say("started");
        wait_for_parent();
        let recorder = recorder_at(&place());
        recorder.keep(true);
        // These are more events than the ring has slots.
        record(&recorder, 7, recorder.geometry().descriptor_capacity() + 100);
    });
    let (_directory, [path]) = places(["ring"]);
    let impatient = Reader::options().wait(Duration::from_millis(20));
    let begun = Instant::now();
    assert_eq!(impatient.open(&path).unwrap_err().kind(), ReaderErrorKind::NotFound);
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!(RingSet::open([&path]).unwrap_err().kind(), ReaderErrorKind::NotFound);

    let mut writer = Talk::told(test, "writer", &path, "started");
    let opened = std::thread::spawn({
        let options = RingSet::options().reader(Reader::options().wait(LONG));
        let path = path.clone();
        move || options.open([path])
    });
    // After this sleep, the other thread is most likely waiting for the ring. The writer makes the ring when `end`
    // closes the writer's stdin.
    std::thread::sleep(Duration::from_millis(50));
    assert!(!opened.is_finished());
    assert!(writer.end().success());
    let mut rings = opened.join().unwrap().unwrap();
    read_to_the_end(&mut rings);
    let ring = &rings.rings()[0];
    let handed_out = ring.reader().unwrap().info().last_seqno;
    let stats = ring.stats();
    // The set waited for the ring before the ring existed. So events that were overwritten before the set could open
    // it count as lost.
    assert_eq!((stats.read + stats.lost, stats.overwritten_before, stats.skipped), (handed_out, 0, 0));
    // If the ring of this name holds other events, opening it fails immediately. The reader does not wait for another
    // ring.
    let other = Reader::options().expect_events::<TestEvent>().wait(LONG);
    assert!(matches!(other.open(&path).unwrap_err().kind(), ReaderErrorKind::WrongContentType { .. }));
}

#[test]
fn the_next_ring_of_a_name_takes_the_place_of_the_one_that_ended_and_the_others_stay() {
    let test = plays!(|part| {
        let recorder = recorder_at(&place());
        record(&recorder, part.parse().unwrap(), 2);
        say("recorded");
        wait_for_parent();
        record(&recorder, part.parse().unwrap(), 1);
    });
    let directory = directory();
    let [path, other_path] = ["ring", "other"].map(|name| directory.path().join(name));
    let start = |part: &str, path: &Path| Talk::told(test, part, path, "recorded");
    let mut first = start("10", &path);
    let mut other = start("50", &other_path);
    let mut rings = RingSet::open([&path, &other_path]).unwrap();
    let mut marks: Vec<_> = (0..4).map(|_| mark(&mut rings)).collect();
    marks.sort_unstable();
    assert_eq!(marks, [(0, 10), (0, 10), (1, 50), (1, 50)]);
    // The set looks for a next ring only when a writer has ended. Here all writers live.
    assert_eq!(rings.reopen(Duration::ZERO).unwrap(), None);
    first.kill();
    assert_eq!(rings.reopen(Duration::from_millis(30)).unwrap(), None);

    let mut second = start("20", &path);
    assert_eq!(rings.reopen(LONG).unwrap(), Some(1));
    let names: Vec<_> = rings.rings().iter().map(|ring| ring.reader().unwrap().name().unwrap()).collect();
    assert_eq!(names, [&other_path, &path]);
    assert_eq!([mark(&mut rings), mark(&mut rings)], [(1, 20), (1, 20)]);
    // The second ring has ended, but the set has not read all of its events. It reads them before it opens the third
    // ring.
    assert!(second.end().success());
    let mut third = start("30", &path);
    assert_eq!(rings.reopen(Duration::ZERO).unwrap(), None);
    assert_eq!(mark(&mut rings), (1, 20));
    assert_eq!(rings.reopen(LONG).unwrap(), Some(1));
    assert_eq!(mark(&mut rings), (1, 30));
    assert!(third.end().success() && other.end().success());
    read_to_the_end(&mut rings);
    assert_eq!([0, 1].map(|ring| rings.rings()[ring].stats().read), [3, 3]);
    assert_eq!(rings.reopen(Duration::from_millis(30)).unwrap(), None);
}

#[test]
fn the_shards_of_a_recorder_that_was_started_again_are_those_of_the_new_one() {
    let test = plays!(|part| {
        let builder = PerfRecorder::builder().config(place()).shifts(15, 21).tables_shift(16).shards(4).prefault(false);
        let recorder = builder.build().unwrap();
        let log = || {
            let subscriber = RecorderSubscriber::new(recorder.clone());
            tracing::subscriber::with_default(subscriber, || tracing::info!("something"));
        };
        std::thread::scope(|scope| {
            log();
            (0..part.parse::<usize>().unwrap()).for_each(|_| scope.spawn(log).join().unwrap());
            say(recorder.shard_count());
            wait_for_parent();
        });
    });
    let (directory, [path]) = places(["spans"]);
    let other = recorder_at(&directory.path().join("other"));
    record(&other, 1, 3);
    let mut rings = RingSet::options().from_readers([]);
    for (round, threads) in ["1", "0"].into_iter().enumerate() {
        let mut writer = Talk::start(test, threads, &path);
        let shards: usize = writer.hear().parse().unwrap();
        if round == 0 {
            rings.add(Reader::open(&path).unwrap(), Seek::Oldest);
            rings.add(Reader::open(directory.path().join("other")).unwrap(), Seek::Oldest);
            rings.find_shards();
        } else {
            assert_eq!(rings.reopen(LONG).unwrap(), Some(1));
        }
        assert_eq!(rings.rings().len(), shards + 1, "{rings:?}");
        assert!(writer.end().success());
        let recorder = if round == 0 { 0 } else { 1 };
        while rings.rings()[recorder].reader().unwrap().state() == RingState::Live || !has_read_all(&rings, recorder) {
            let _ = rings.next_timeout(Duration::from_millis(5));
        }
        for ring in rings.rings().iter().filter(|ring| ring.recorder() == Some(recorder)) {
            assert!(ring.shard() > 0 && ring.stats().read > 0, "{ring:?}");
        }
    }
}

/// Returns true if the set has read all events of this recorder: those of its ring, and those of its other shards.
fn has_read_all(rings: &RingSet, recorder: usize) -> bool {
    let its = rings.rings().iter().enumerate();
    let mut its = its.filter(|(index, ring)| *index == recorder || ring.recorder() == Some(recorder));
    its.all(|(_, ring)| ring.stats().read == ring.reader().unwrap().info().last_seqno)
}
