//! Records of the `log` crate come through tracing-log. A log record is recorded in the current span, with the target,
//! module, file and line that the program gave it. Filters compare this target.

use crate::fixtures::*;
use eventring::schema::perf::CallSiteLevel;
use eventring::tracing::{PerfContent, PerfReader, RecorderLayer, TargetFilter};
use eventring_stress::reference;
use tracing_subscriber::prelude::*;

/// The source line of the first record.
const FIRST_LINE: u32 = line!() + 4;

fn work() {
    let _span = info_span!("request").entered();
    log::warn!("{} left", 3);
    log::debug!(target: "shop::db", "slow");
    log::trace!("details");
    info!("not of log");
    info!(target: "log", { log.target = "pretended" }, "not of log either");
}

fn recorder(place: &Path) -> PerfRecorder {
    spans_in(place).shifts(15, 21).tables_shift(16).build().unwrap()
}

/// Returns the target, level, line and fields of each event. The last value is true if the event is in a span.
fn events(recorder: &PerfRecorder) -> Vec<(String, CallSiteLevel, Option<u32>, String, bool)> {
    let records = reference::records(&mut PerfReader::from_shards(recorder.open_readers().unwrap()));
    let events = records.into_iter().filter_map(|record| match record.content {
        PerfContent::Event { span, call_site, fields } => {
            assert_eq!(call_site.module.as_deref(), Some(module_path!()));
            assert_eq!(call_site.file.as_deref(), Some(file!()));
            let fields: Vec<_> = fields.values.iter().map(|field| format!("{}={}", field.name, field.value)).collect();
            Some((call_site.target.clone(), call_site.level, call_site.line, fields.join(" "), span.is_some()))
        }
        _ => None,
    });
    events.collect()
}

#[test]
fn log_records_name_their_own_place_and_are_filtered_by_it() {
    alone!();
    tracing_log::LogTracer::init().unwrap();
    let (directory, [place]) = places(["log"]);
    let event = |target: &str, level, line, fields: &str| {
        (target.to_owned(), level, Some(FIRST_LINE + line), fields.to_owned(), true)
    };
    let here = module_path!();
    let expected = [
        event(here, CallSiteLevel::Warn, 0, "message=3 left"),
        event("shop::db", CallSiteLevel::Debug, 1, "message=slow"),
        event(here, CallSiteLevel::Trace, 2, "message=details"),
        event(here, CallSiteLevel::Info, 3, "message=not of log"),
        event("log", CallSiteLevel::Info, 4, "message=not of log either log.target=pretended"),
    ];

    let by_subscriber = recorder(&place);
    let dispatch = Dispatch::new(RecorderSubscriber::new(by_subscriber.clone()));
    dispatcher::with_default(&dispatch, work);
    assert_eq!(events(&by_subscriber), expected);

    let shown = run!("watch", &place, "--from", "oldest", "--count", "12", "--json", "--quiet").json_lines();
    let warning = shown.iter().find(|line| line["payload"]["fields"]["message"] == "3 left").unwrap();
    assert_eq!((&warning["payload"]["target"], &warning["payload"]["line"]), (&here.into(), &FIRST_LINE.into()));

    let by_layer = recorder(&directory.path().join("layer"));
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(by_layer.clone())));
    dispatcher::with_default(&dispatch, work);
    assert_eq!(events(&by_layer), expected);

    let filtered = recorder(&directory.path().join("filtered"));
    let filter = TargetFilter::parse("off,shop=debug").unwrap();
    let dispatch = Dispatch::new(RecorderSubscriber::new(filtered.clone()).with_filter(filter));
    dispatcher::with_default(&dispatch, work);
    let unfiltered_one = (expected[1].0.clone(), expected[1].1, expected[1].2, expected[1].3.clone(), false);
    assert_eq!(events(&filtered), [unfiltered_one]);
}
