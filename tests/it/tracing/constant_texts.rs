//! Texts of log records that are the same each time, and those that only seem to be. Whatever is stored once, readers
//! show each text as it was.

use crate::fixtures::*;
use eventring_stress::switched_off::both_kinds;
use std::fmt;
use tracing::{dispatcher, warn};

/// The two ways to record.
fn both() -> [(PerfRecorder, Dispatch); 2] {
    both_kinds(|_| small().shards(1).build().unwrap())
}

/// Returns the log records of this test; other tests of the process record to other rings.
fn recorded(recorder: &PerfRecorder) -> Vec<PerfRecord> {
    let records = records(recorder);
    records.into_iter().filter(|record| matches!(record.content, PerfContent::Event { .. })).collect()
}

/// Returns the text of each record, and whether it is stored with the call site.
fn texts(recorder: &PerfRecorder) -> Vec<(String, bool)> {
    let text = |record: PerfRecord| match record.content {
        PerfContent::Event { call_site, fields, .. } => {
            (fields.get("message").unwrap().to_string(), call_site.format.is_some())
        }
        _ => unreachable!("the others are left out"),
    };
    recorded(recorder).into_iter().map(text).collect()
}

/// Writes what it is told, piece by piece.
struct Pieces<'p>(&'p [&'p str]);

impl fmt::Display for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

#[test]
fn a_text_that_comes_twice_is_stored_once_and_each_other_text_is_recorded_as_it_is() {
    // Call sites belong to the process: the second recorder meets those whose texts are known.
    for ((recorder, dispatch), is_known) in both().into_iter().zip([false, true]) {
        dispatcher::with_default(&dispatch, || {
            for _ in 0..4 {
                info!("started {{not a field}} “quoted”");
            }
        });
        let expected = "started {not a field} “quoted”".to_owned();
        assert_eq!(texts(&recorder), [is_known, is_known, true, true].map(|is_stored| (expected.clone(), is_stored)));

        let log = |pieces: &[&str]| dispatcher::with_default(&dispatch, || info!("{}", Pieces(pieces)));
        let before = texts(&recorder).len();
        for pieces in [
            &["same"][..],
            &["same"],
            &["same"],
            &["other"],
            &["same"],
            &["same", " and more"],
            &["sa", "me"],
            &[],
            &["same"],
        ] {
            log(pieces);
        }
        let texts = texts(&recorder).split_off(before);
        let expected =
            ["same", "same", "same", "other", "same", "same and more", "same", "", "same"].map(str::to_owned);
        assert_eq!(texts.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>(), expected);
        let is_stored: Vec<bool> = texts.iter().map(|(_, is_stored)| *is_stored).collect();
        assert_eq!(is_stored, [is_known, is_known, true, false, true, false, false, false, true]);
    }
}

#[test]
fn texts_that_change_at_first_or_are_long_are_never_stored() {
    for (recorder, dispatch) in both() {
        let long = "x".repeat(300);
        dispatcher::with_default(&dispatch, || {
            for text in ["first", "second", "second", "second"] {
                info!("{}", text);
            }
            (0..3).for_each(|_| info!("{}", long));
            (0..3).for_each(|n| info!("number {n}"));
        });
        let texts = texts(&recorder);
        assert!(texts.iter().all(|(_, is_stored)| !is_stored), "{texts:?}");
        assert_eq!(texts[4].0, long);
        assert_eq!((texts[0].0.as_str(), texts[9].0.as_str()), ("first", "number 2"));
    }
}

#[test]
fn fields_levels_and_places_of_a_record_with_a_stored_text_are_those_of_its_call_site() {
    for (recorder, dispatch) in both() {
        dispatcher::with_default(&dispatch, || {
            for user in 0..3 {
                warn!(target: "shop", user, name = "ada", "paid");
            }
        });
        let records = recorded(&recorder);
        let site = |record: &PerfRecord| match &record.content {
            PerfContent::Event { call_site, fields, .. } => {
                let fields = fields.values.iter().map(|field| format!("{}={}", field.name, field.value));
                let place = (call_site.name.clone(), call_site.target.clone(), call_site.level, call_site.line);
                (place, fields.collect::<Vec<_>>().join(" "))
            }
            _ => unreachable!("the others are left out"),
        };
        let sites: Vec<_> = records.iter().map(site).collect();
        assert!(sites.iter().all(|(place, _)| *place == sites[0].0), "{sites:?}");
        assert_eq!(sites[2].1, "message=paid user=2 name=ada");
    }
}
