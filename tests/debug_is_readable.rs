//! A `main` that returns an error prints its `Debug`: people must be able to read it. And a recorder's is no page of schema.

use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};

#[test]
fn errors_are_debugged_as_they_are_displayed() {
    let error = Reader::open("/dev/shm/no/such/ring").unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    let error = Recorder::builder(ContentDescription::new(300, "SHOP")).config("x:3:4").build().unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    let boxed: Box<dyn std::error::Error> = error.into();
    assert!(format!("{boxed:?}").starts_with("cannot use ring configuration: \"x:3:4\""), "{boxed:?}");
}

#[test]
fn a_recorder_is_debugged_without_its_schema_text() {
    let description = ContentDescription::new(300, "SHOP").schema_text("schema-text 1\ncontent 300 SHOP 1\n");
    let recorder = Recorder::builder(description).anonymous().compact(true).shifts(15, 21).build().unwrap();
    let shown = format!("{recorder:?}");
    assert!(shown.contains("SHOP") && !shown.contains("schema-text"), "{shown}");
}
