//! The file of a receiver shows what was open before the ring's window, also if its forwarder dies.

use crate::broker::place::Place;
use crate::fixtures::*;

/// Makes a recorder that ends with the dispatcher.
fn records(ring: &str, (descriptors, payload): (u32, u32), shards: usize) -> Dispatch {
    let builder = spans_in(Path::new(ring)).shifts(descriptors, payload).shards(shards);
    Dispatch::new(RecorderSubscriber::new(builder.prefault(false).build().unwrap()))
}

/// Returns the spans that are certainly open in a file, with the number of their threads.
fn open(file: &str) -> Vec<(String, usize)> {
    let opened = run!("open", file, "--json").json();
    let sure = opened["spans"].list().iter().filter(|span| span["may_have_closed"] == false);
    let name = |span: &Value| {
        assert_eq!((&span["opened_before_window"], &span["fields"]["port"]), (&false.into(), &80.into()), "{span:#}");
        (span["name"].text().to_owned(), span["threads"].list().len())
    };
    sure.map(name).collect()
}

#[test]
fn a_file_of_a_receiver_names_the_spans_that_were_open_before_the_forwarder_came_and_when_it_died() {
    let Some(place) = Place::new() else { return };
    let ring = place.path("shop");
    let dispatch = records(&ring, (15, 21), 2);
    let floods = || (0..40_000_u64).for_each(|n| info_span!(parent: None, "request", n).in_scope(|| ()));
    dispatcher::with_default(&dispatch, || {
        let service = info_span!("service", port = 80).entered();
        let (idle, ends) = (info_span!("idle", port = 80), info_span!("ends", port = 80));
        thread::scope(|scope| {
            scope.spawn(|| dispatcher::with_default(&dispatch, floods));
        });
        floods();
        let address = place.broker.address();
        let mut forward = live!("forward", &ring, "--to", &address, "--stream", "S", "--host", "h", "--every", "50ms");
        thread::sleep(Duration::from_secs(1));
        drop(ends);
        thread::sleep(Duration::from_millis(500));
        forward.kill();
        let file = place.path("all.evc");
        place.receive(&file, &[]).ends(0);
        let mut shown = open(&file);
        shown.sort();
        assert_eq!(shown, [("idle".to_owned(), 0), ("service".to_owned(), 1)]);
        drop((service, idle));
    });
}

#[test]
fn a_stream_with_many_looks_is_received_to_its_end() {
    let Some(place) = Place::new() else { return };
    let ring = place.path("shop");
    let dispatch = records(&ring, (17, 23), 1);
    let address = place.broker.address();
    let forward = live!("forward", &ring, "--to", &address, "--stream", "S", "--every", "50ms", "--json");
    dispatcher::with_default(&dispatch, || {
        let open: Vec<_> = (0..1000_u64).map(|port| info_span!("open", port)).collect();
        // Images of several batches: the first one, some later ones, and the last.
        for _ in 0..20 {
            (0..100_u64).for_each(|n| info_span!(parent: None, "request", n).in_scope(|| ()));
            thread::sleep(Duration::from_millis(20));
        }
        drop(open);
    });
    drop(dispatch);
    let sent = forward.end().said();
    assert!(sent["batches"].as_u64() > Some(3), "{sent}");
    let received = place.receive(&place.path("all.evc"), &[]).json();
    assert_eq!((&received["events"], &received["refused"]), (&sent["events"], &0.into()), "{received}");
}
