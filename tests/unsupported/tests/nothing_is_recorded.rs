//! Tests of a system without event rings. There, functions that would make or open a ring return the error
//! `Unsupported`. All other functions do nothing.

#![cfg(any(not(target_os = "linux"), eventring_unsupported))]

use eventring::global::{GlobalRecorder, InitErrorKind};
use eventring::reader::{Reader, ReaderErrorKind};
use eventring::recorder::{ContentDescription, Recorder, RecorderErrorKind};
use eventring::tracing::{PerfReader, PerfRecorder, RecorderLayer, RecorderSubscriber, SetupError, SetupErrorKind};
use eventring::{EventPayload, EventType, record, recordv};
use eventring_capture::{CaptureErrorKind, CaptureFile, CaptureOptions, CaptureProgress, capture};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use tracing_subscriber::layer::SubscriberExt as _;

#[derive(EventPayload)]
struct OrderPlaced {
    order_id: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    #[event(payload = OrderPlaced)]
    OrderPlaced = 2,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[test]
fn typed_events_go_nowhere_and_are_not_even_evaluated() {
    let error = SHOP.try_init::<Shop>("shop:16:27").unwrap_err();
    assert_eq!(error.kind(), InitErrorKind::Unsupported);
    assert!(error.to_string().contains("need Linux"), "{error}");
    assert!(!SHOP.is_enabled());
    let order = || -> OrderPlaced { panic!("nobody records it") };
    record!(Shop::OrderPlaced, &order());
    recordv!(Shop::OrderPlaced, &order(), []);

    let builder = || Recorder::builder(ContentDescription::of::<Shop>());
    assert_eq!(builder().config("shop:16:27").build().unwrap_err().kind(), RecorderErrorKind::Unsupported);
    assert_eq!(builder().anonymous().build().unwrap_err().kind(), RecorderErrorKind::Unsupported);
    // A mistake in the configuration is found on every system.
    assert_eq!(builder().config("shop:1:2").build().unwrap_err().kind(), RecorderErrorKind::BadConfig);
}

#[test]
fn spans_go_nowhere() {
    let error = eventring::tracing::try_init("shop").unwrap_err();
    assert_eq!(error.kind(), SetupErrorKind::Unsupported);
    assert!(error.to_string().contains("need Linux"), "{error}");
    // `init` goes on without a recording.
    let recording = eventring::tracing::init("shop");
    assert_eq!(recording.problem().map(SetupError::kind), Some(SetupErrorKind::Unsupported));
    assert_eq!(PerfRecorder::builder().anonymous().build().unwrap_err().kind(), RecorderErrorKind::Unsupported);
    let dispatches = [
        tracing::Dispatch::new(RecorderSubscriber::global()),
        tracing::Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::global())),
    ];
    for dispatch in &dispatches {
        tracing::dispatcher::with_default(dispatch, || {
            tracing::info_span!("request", order_id = 7).in_scope(|| tracing::info!("hello"));
        });
    }
}

#[test]
fn nothing_is_read() {
    assert_eq!(Reader::open("shop").unwrap_err().kind(), ReaderErrorKind::Unsupported);
    assert_eq!(PerfReader::open("shop").unwrap_err().kind(), ReaderErrorKind::Unsupported);
    assert_eq!(CaptureFile::open(Path::new("shop.evc")).unwrap_err().kind(), CaptureErrorKind::Unsupported);
    let go_on = &mut |_: &CaptureProgress| ControlFlow::Continue(());
    let captured = capture(&["shop".into()], Path::new("shop.evc"), &CaptureOptions::default(), go_on);
    assert_eq!(captured.unwrap_err().reader_error().unwrap().kind(), ReaderErrorKind::Unsupported);
}

/// `.ci/run unsupported` builds the program with the same switch into the same target directory.
#[test]
fn the_program_says_that_it_cannot() {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("eventring");
    assert!(program.exists(), "{} is missing: `.ci/run unsupported` builds it", program.display());
    let output = Command::new(program).arg("list").output().unwrap();
    assert_eq!(output.status.code(), Some(15));
    assert!(String::from_utf8(output.stderr).unwrap().contains("need Linux"));
}
