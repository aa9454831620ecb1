//! Rust prints the `Debug` of an error that `main` returns, so this text must be readable. The `Debug` of a recorder
//! must not contain its whole schema text.

use crate::fixtures::*;

/// Checks that the error's `Debug` is the same text as its `Display`, and contains the messages of all its causes.
#[track_caller]
fn check(error: &dyn std::error::Error) {
    let debugged = format!("{error:?}");
    assert_eq!(debugged, error.to_string());
    let mut source = error.source();
    while let Some(cause) = source {
        assert!(debugged.contains(&cause.to_string()), "{debugged}\ndoes not say\n{cause}");
        source = cause.source();
    }
}

#[test]
fn errors_are_debugged_as_they_are_displayed() {
    use eventring::schema::SchemaModel;
    use eventring::tracing::{PerfRecorder, TargetFilter, try_init, try_init_with};

    let setup = try_init("/no/such/directory/app").unwrap_err();
    assert!(std::error::Error::source(&setup).is_some());
    check(&setup);
    check(&try_init_with(PerfRecorder::builder().config("x:3:4"), TargetFilter::all()).unwrap_err());
    check(&"info,loud=loud".parse::<TargetFilter>().unwrap_err());
    check(&SchemaModel::parse("no schema").unwrap_err());
    check(&"0xzz".parse::<eventring::schema::exec::Address>().unwrap_err());
    check(&eventring::schema::RecordErrorView::decode(&[1]).unwrap_err());
    check(&Reader::open("/dev/shm/no/such/ring").unwrap_err());
    static SHOP: eventring::global::GlobalRecorder = eventring::global::GlobalRecorder::new("shop");
    let builder = || Recorder::builder(ContentDescription::new(300, "SHOP")).config("x:3:4");
    check(&SHOP.try_init_with(builder()).unwrap_err());
    check(&builder().build().unwrap_err());
}

#[test]
fn a_recorder_is_debugged_without_its_schema_text() {
    let description = ContentDescription::new(300, "SHOP").schema_text("schema-text 1\ncontent 300 SHOP 1\n");
    let recorder = Recorder::builder(description).anonymous().compact(true).shifts(15, 21).build().unwrap();
    let shown = format!("{recorder:?}");
    assert!(shown.contains("SHOP") && !shown.contains("schema-text"), "{shown}");
}
