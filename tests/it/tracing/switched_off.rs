//! Spans that end while recording is switched off. No reader and no export shows them as still open.

use crate::fixtures::*;
use eventring_stress::switched_off::{both_kinds, builder, run};

#[test]
fn spans_end_while_recording_is_off_and_new_spans_are_not_recorded() {
    for (is_layer, (recorder, dispatch)) in
        [false, true].into_iter().zip(both_kinds(|_| builder().anonymous().build().unwrap()))
    {
        let spans = tracing::dispatcher::with_default(&dispatch, || run(&recorder, is_layer));
        let records = records(&recorder);
        let tree = SpanTree::from_records(&records);
        assert_eq!(tree.iter().count(), spans);
        for span in tree.iter() {
            let name = span.name();
            assert!(!span.is_open(), "{name} of {} is open", if is_layer { "the layer" } else { "the subscriber" });
            let ends: Vec<_> = span
                .slices
                .iter()
                .map(|slice| (slice.entered_epoch_nanos.is_some(), slice.exited_epoch_nanos.is_some()))
                .collect();
            match &*name {
                "deep" | "across" | "twice" => assert_eq!(ends, [(true, true)], "{name}"),
                "often" | "elsewhere" | "child" => assert_eq!(ends, [], "{name}"),
                // The enter was not recorded, so the reader shows a slice with an exit only, and says that the span
                // may have losses.
                "still" => assert_eq!((ends, span.may_have_losses), (vec![(false, true)], true)),
                "late" => assert_eq!(ends, [(true, true)]),
                other => panic!("{other}"),
            }
        }
        let id = |name: &str| tree.iter().find(|span| span.name() == name).unwrap().id;
        assert_eq!(tree.get(id("child")).unwrap().parent, Some(id("still")));
    }
}

#[test]
fn a_switch_that_is_turned_beside_threads_full_of_spans_leaves_none_of_them_open() {
    for (recorder, dispatch) in both_kinds(|_| builder().anonymous().build().unwrap()) {
        let (has_ended, ended_while_off) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        tracing::dispatcher::with_default(&dispatch, || {
                            for _ in 0..15_000 {
                                let span = info_span!("outer").entered();
                                info_span!("inner", n = 1).in_scope(|| ());
                                std::thread::yield_now();
                                let is_off = !recorder.is_enabled();
                                drop(span);
                                ended_while_off.fetch_add(u64::from(is_off), Ordering::Relaxed);
                            }
                        });
                    })
                })
                .collect();
            scope.spawn(|| {
                // While a program has only one subscriber, `tracing` asks the default subscriber of the calling
                // thread about call sites. So this thread makes that subscriber its default.
                tracing::dispatcher::with_default(&dispatch, || {
                    while !has_ended.load(Ordering::Relaxed) {
                        recorder.set_enabled(false);
                        std::thread::yield_now();
                        recorder.set_enabled(true);
                        std::thread::yield_now();
                    }
                });
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            has_ended.store(true, Ordering::Relaxed);
        });
        assert!(ended_while_off.load(Ordering::Relaxed) > 0, "the switch was never off when a span ended");
        let records = records(&recorder);
        let tree = SpanTree::from_records(&records);
        let all = tree.iter().count();
        let open = tree.iter().filter(|span| span.is_open()).count();
        let open_slices =
            tree.iter().flat_map(|span| &span.slices).filter(|slice| slice.exited_epoch_nanos.is_none()).count();
        assert!(all > 0);
        assert_eq!((open, open_slices), (0, 0), "open of {all} spans");
        let closes = records.iter().filter(|record| matches!(record.content, PerfContent::SpanClose { .. })).count();
        assert_eq!(closes, all);
    }
}
