//! Full tables of call sites and threads. A description that does not fit is recorded as an event. When that event is
//! overwritten, only the id is left. Readers count and show both cases.

use crate::fixtures::*;
use eventring::tracing::{CatalogLosses, PerfContent, PerfItem, PerfReader, PerfRecord};

/// Logs from more call sites than the table can hold.
macro_rules! log_from_many_places {
    ($($n:literal)*) => { $(info!(name: concat!("a place with a long name, number ", $n), number = $n);)* };
}

fn log_from_forty_places() {
    log_from_many_places!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
}

fn read(place: &Path) -> (Vec<PerfRecord>, CatalogLosses) {
    let mut reader = PerfReader::open(place).unwrap();
    let mut records = Vec::new();
    while let Some(item) = reader.next() {
        if let PerfItem::Record(record) = item {
            records.push(record);
        }
    }
    (records, reader.catalog_losses())
}

/// Returns how many events come from known call sites, from unknown call sites, from known threads, and from unknown
/// threads.
fn known_and_unknown(records: &[PerfRecord]) -> [usize; 4] {
    let mut counts = [0; 4];
    for record in records {
        if let PerfContent::Event { call_site, fields, .. } = &record.content {
            counts[usize::from(!call_site.is_known)] += 1;
            counts[2 + usize::from(record.thread.os_thread_id.is_none())] += 1;
            let field = &fields.values[0];
            let name = if call_site.is_known { "number" } else { "field 0" };
            assert_eq!((&*field.name, fields.is_complete()), (name, true));
            assert_eq!(call_site.is_known, !call_site.name.starts_with("call site "));
        }
    }
    counts
}

#[test]
fn entries_that_do_not_fit_the_tables_are_known_by_events_then_by_id_and_are_counted() {
    // The rings describe the call sites of other tests in this process, too.
    alone!();
    const THREADS: usize = 80;
    let (directory, [place]) = places(["full"]);
    let recorder = spans_in(&place).shifts(15, 21).shards(1).tables_shift(13).build().unwrap();
    let log = || in_recorder(recorder.clone(), log_from_forty_places);

    // These events fill the tables. The descriptions that do not fit into the tables are recorded as events, which
    // are still in the ring.
    for _ in 0..THREADS {
        thread::scope(|scope| scope.spawn(log).join().unwrap());
    }
    let (records, losses) = read(&place);
    assert_eq!(known_and_unknown(&records), [40 * THREADS, 0, 40 * THREADS, 0]);
    assert!((10..40).contains(&losses.call_sites), "{losses:?}");
    assert!((10..60).contains(&losses.threads), "{losses:?}");
    assert_eq!((losses.shards, losses.spans), (0, 0));

    // The table has no room for this thread. The thread records so much that the events with descriptions are
    // overwritten. Only `join` waits until the thread has recorded its end.
    thread::scope(|scope| scope.spawn(|| (0..2000).for_each(|_| log())).join().unwrap());
    let (records, later) = read(&place);
    let [known, unknown, of_known_threads, of_unknown] = known_and_unknown(&records);
    // Each call site is in the ring as often as any other.
    let events = known + unknown;
    assert!(unknown.abs_diff(events * losses.call_sites as usize / 40) <= 40, "{unknown} of {events}");
    assert_eq!((of_known_threads, of_unknown), (0, events));
    assert_eq!((later.call_sites, later.threads), (losses.call_sites, losses.threads + 1));

    let capture = program::place(&directory, "t.evc");
    let captured = run!("capture", &place, "-o", &capture, "--now");
    for (count, what) in [(later.call_sites, "call sites"), (later.threads, "threads")] {
        assert!(captured.err.contains(&format!("{count} {what} found no room in the table")), "{captured:?}");
    }
    let lines = exported(&capture);
    let unnamed = |line: &&Value| line["name"].as_str().is_some_and(|name| name.starts_with("call site "));
    assert_eq!(lines.iter().filter(unnamed).count(), unknown);
    let info = run!("info", &place, "--json").json();
    assert_eq!(info["extension"]["counters"]["table_overflows"], later.call_sites + later.threads, "{info:#}");
}
