//! A trace as trace_processor shows it, compared with the JSON lines of the same recording. The answers are those of
//! `ask_everything` in `perfetto_engine.py`.

use crate::fixtures::*;
use std::cmp::Reverse;

/// A slice of a span: the id of the span, its name, and the times. The end is `None` if the slice is open, or if its
/// end was lost.
pub type SpanSlice = (u64, String, u64, Option<u64>);

/// A trace, and the JSON lines of its recording.
pub struct Trace<'a> {
    pub answers: &'a Value,
    pub lines: &'a [Value],
}

/// Returns a slice of a span; `None` if this is an instant or a loss.
fn span_slice(slice: &Value) -> Option<SpanSlice> {
    let (start, duration) = (slice["ts"].number(), slice["dur"].as_i64().unwrap());
    let is_lost = |end: &str| slice["args"][end][1] == "lost";
    // One record may be all that is known of a span whose beginning or end was lost.
    let is_instant = duration == 0 && !is_lost("debug.start") && !is_lost("debug.end");
    let id = slice["args"]["debug.span_id"][1].as_str().filter(|_| !is_instant)?;
    let has_end = duration >= 0 && !is_lost("debug.end");
    let end = has_end.then(|| start + duration.unsigned_abs());
    Some((id.parse().unwrap(), slice["name"].text().to_owned(), start, end))
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Arguments that differ by run: where the source is, and how the thread spent the time of the slice.
const OF_THE_RUN: [&str; 5] =
    ["source_location_iid", "debug.cpu_ns", "debug.queue_ns", "debug.sleep_ns", "debug.unmeasured_ns"];

fn args(slice: &Value) -> BTreeMap<String, String> {
    let args = slice["args"].as_object().unwrap().iter();
    let args = args.filter(|(name, value)| !OF_THE_RUN.contains(&name.as_str()) && !value[1].is_null());
    args.map(|(name, value)| (name.clone(), text(&value[1]))).collect()
}

/// Returns the arguments of a slice without the time for which it was open, which depends on the look. Each open slice
/// must have it, and no other.
fn args_of_any_look(slice: &Value) -> BTreeMap<String, String> {
    let mut args = args(slice);
    assert_eq!(args.remove("debug.open_at_least_ns").is_some(), args.contains_key("debug.open"), "{slice}");
    args
}

/// Returns the arguments that the last slice of a span should have, as trace_processor writes them.
fn expected_args(span: &Value) -> BTreeMap<String, String> {
    let fields = span["fields"].as_object().unwrap().iter();
    let mut args: BTreeMap<String, String> =
        fields.map(|(name, value)| (format!("debug.{name}"), text(value))).collect();
    args.insert("debug.span_id".into(), text(&span["id"]));
    if !span["parent"].is_null() {
        args.insert("debug.parent_span_id".into(), text(&span["parent"]));
    }
    // If several arguments have one name, trace_processor shows the last.
    if let Some(follows) = span["follows_from"].list().last() {
        args.insert("debug.follows_from".into(), text(follows));
    }
    if span["open"] == true {
        args.insert("debug.open".into(), "true".into());
    }
    args.insert("source.file_name".into(), text(&span["file"]));
    args.insert("source.line_number".into(), text(&span["line"]));
    args
}

impl<'a> Trace<'a> {
    /// Returns the JSON lines of this type.
    pub fn of_type(&self, what: &str) -> impl Iterator<Item = &'a Value> {
        self.lines.iter().filter(move |line| line["type"] == what)
    }

    pub fn slices(&self) -> &'a [Value] {
        self.answers["slices"].list()
    }

    /// Returns the slices of spans: those of threads, or with `is_whole` those from creation to close.
    fn drawn(&self, is_whole: bool) -> Vec<(&'a Value, SpanSlice)> {
        let of_view = self.slices().iter().filter(|slice| (slice["title"] == "spans") == is_whole);
        of_view.filter_map(|slice| Some((slice, span_slice(slice)?))).collect()
    }

    /// Returns the instants of the trace by name and time.
    fn instants(&self) -> BTreeMap<(&'a str, u64), Vec<&'a Value>> {
        let mut instants: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for slice in self.slices().iter().filter(|slice| slice["dur"] == 0) {
            instants.entry((slice["name"].text(), slice["ts"].number())).or_default().push(slice);
        }
        instants
    }

    /// Checks that trace_processor has found nothing wrong, and knows the clocks of the recording.
    pub fn check_import(&self) {
        assert_eq!(self.answers["errors"], json!([]));
        let clocks = self.answers["clocks"].list().iter();
        assert_eq!(clocks.map(|clock| &clock["clock_name"]).collect::<Vec<_>>(), ["BOOTTIME", "MONOTONIC", "REALTIME"]);
    }

    /// Checks the slices of threads: each has the times that were recorded, and its depth is the number of slices of
    /// its track around it. Returns how many there are.
    pub fn check_slices(&self) -> usize {
        let slices = self.drawn(false);
        let drawn: BTreeSet<SpanSlice> = slices.iter().map(|(_, slice)| slice.clone()).collect();
        let recorded: BTreeSet<SpanSlice> = self.recorded_slices();
        let differ: Vec<_> = drawn.symmetric_difference(&recorded).take(10).collect();
        assert_eq!((differ, drawn.len()), (vec![], recorded.len()), "in only one of the trace and the lines");
        assert_eq!(slices.len(), drawn.len());
        let open: BTreeSet<u64> = self.of_type("span").filter(|span| span["open"] == true).map(id).collect();
        for (slice, (span, ..)) in &slices {
            assert!(slice["dur"] != -1 || (slice["args"]["debug.open"][1] == "true" && open.contains(span)), "{slice}");
        }
        assert_depths(slices);
        drawn.len()
    }

    /// Returns the slices of threads that the lines have. A slice whose beginning was lost is not drawn.
    fn recorded_slices(&self) -> BTreeSet<SpanSlice> {
        let slices = self.of_type("span").flat_map(|span| {
            span["slices"].list().iter().filter_map(|slice| {
                let name = span["name"].text().to_owned();
                Some((id(span), name, slice["start_ns"].as_u64()?, slice["end_ns"].as_u64()))
            })
        });
        slices.collect()
    }

    /// Checks the slices from creation to close. Returns how many there are.
    pub fn check_whole_spans(&self) -> usize {
        let drawn: BTreeMap<u64, (&Value, SpanSlice)> =
            self.drawn(true).into_iter().map(|(slice, span)| (span.0, (slice, span))).collect();
        assert_eq!(drawn.len(), self.drawn(true).len(), "a span is there twice");
        for span in self.of_type("span") {
            let (slice, found) = drawn.get(&id(span)).unwrap_or_else(|| panic!("not in the trace: {span}"));
            // A span whose creation was lost begins where it was seen first.
            let start = span["start_ns"].as_u64().unwrap_or(found.2);
            assert_eq!(slice["args"]["debug.start"][1] == "lost", span["start_ns"].is_null(), "{slice} {span}");
            assert_eq!(*found, (id(span), text(&span["name"]), start, span["end_ns"].as_u64()), "{span}");
            assert_eq!(slice["dur"] == -1, span["open"] == true, "{slice} {span}");
            if let Some(last) = span["last_seen_ns"].as_u64() {
                assert_eq!(slice["dur"], last - start, "{slice} {span}");
            }
        }
        assert_eq!(drawn.len(), self.of_type("span").count());
        drawn.len()
    }

    /// Checks the arguments and the category of each slice. A slice shows the fields that were recorded until its end.
    /// So the slice of a span from creation to close shows all of them. If the trace has no such slices, the last slice
    /// of a thread must show all of them.
    pub fn check_args(&self) {
        let mut by_span: BTreeMap<u64, Vec<(&Value, SpanSlice)>> = BTreeMap::new();
        for (slice, found) in self.drawn(false) {
            by_span.entry(found.0).or_default().push((slice, found));
        }
        let wholes: HashMap<u64, &Value> =
            self.drawn(true).into_iter().map(|(slice, (span, ..))| (span, slice)).collect();
        for span in self.of_type("span") {
            let mut expected = expected_args(span);
            let of_span = by_span.get(&id(span)).map_or(&[][..], |slices| slices);
            for (slice, _) in of_span {
                let args = args_of_any_look(slice);
                assert!(args.iter().all(|arg| expected.get(arg.0) == Some(arg.1)), "{slice} {expected:#?}");
                assert_eq!(slice["category"], span["target"]);
            }
            if let Some(whole) = wholes.get(&id(span)) {
                expected.insert("debug.busy_ns".into(), text(&span["busy_ns"]));
                assert_eq!((args_of_any_look(whole), &whole["category"]), (expected, &span["target"]));
            } else if let Some(last) = of_span.iter().max_by_key(|(_, slice)| slice.2) {
                assert_eq!(args_of_any_look(last.0), expected);
            }
        }
    }

    /// Checks that each log record is there once, with its level as category and the correlation id from which the UI
    /// makes the colour of the level. Returns how many of each level there are.
    pub fn check_log_records(&self) -> BTreeMap<String, usize> {
        let instants = self.instants();
        let mut levels = BTreeMap::new();
        for event in self.of_type("event") {
            let (message, nanos) = (event["fields"]["message"].text(), event["time_ns"].number());
            // An instant at the end of its slice is drawn one nanosecond earlier.
            let at = [nanos, nanos - 1].into_iter().filter_map(|nanos| instants.get(&(message, nanos)));
            let is_it = |slice: &&&Value| {
                args(slice).get("debug.span_id") == event["span"].as_u64().map(|id| id.to_string()).as_ref()
            };
            let found: Vec<_> = at.flatten().filter(is_it).collect();
            assert_eq!(found.len(), 1, "{event} {found:?}");
            let args = args(found[0]);
            assert_eq!((&found[0]["category"], &args["debug.target"]), (&event["level"], &text(&event["target"])));
            let colour = match event["level"].as_str() {
                Some("ERROR") => "ERROR log record",
                Some("WARN") => "WARN record",
                _ => "log_record",
            };
            assert_eq!(args["correlation_id"], colour, "{event}");
            *levels.entry(text(&event["level"])).or_default() += 1;
        }
        levels
    }

    /// Checks that the samples of the program's counters are there, in their order. Returns how many there are.
    pub fn check_counters(&self) -> usize {
        let names: BTreeSet<&str> = self.of_type("counter").map(|sample| sample["name"].text()).collect();
        let sample = |value: &Value, nanos: &str| (text(&value["name"]), value[nanos].clone(), value["value"].as_f64());
        let drawn = self.answers["counters"].list().iter();
        let drawn = drawn.filter(|value| names.contains(value["name"].text()));
        let drawn: Vec<_> = drawn.map(|value| sample(value, "ts")).collect();
        let recorded: Vec<_> = self.of_type("counter").map(|value| sample(value, "time_ns")).collect();
        assert_eq!(drawn, recorded);
        drawn.len()
    }

    /// Returns the samples of a counter: the times and the values.
    pub fn counter(&self, name: &str) -> Vec<(u64, f64)> {
        let of_name = self.answers["counters"].list().iter().filter(|sample| sample["name"] == name);
        of_name.map(|sample| (sample["ts"].number(), sample["value"].as_f64().unwrap())).collect()
    }

    /// Checks that the slices of each ring's losses have the events of its gaps. Returns how many events were lost.
    pub fn check_losses(&self) -> u64 {
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for loss in self.of_type("loss") {
            *expected.entry(format!("losses of {}", text(&loss["ring"]))).or_default() += loss["count"].number();
        }
        let mut drawn: BTreeMap<String, u64> = BTreeMap::new();
        for slice in self.slices().iter().filter(|slice| !slice["args"]["debug.first_seqno"].is_null()) {
            let count: u64 = slice["args"]["debug.count"][1].text().parse().unwrap();
            let events = if count == 1 { "event" } else { "events" };
            let titles = ["lost", "overwritten before"].map(|what| format!("{count} {events} {what}"));
            assert!(titles.contains(&text(&slice["name"])), "{}", slice["name"]);
            assert_eq!(slice["args"]["correlation_id"][1], "eventring_loss");
            *drawn.entry(text(&slice["title"])).or_default() += count;
        }
        assert_eq!(drawn, expected);
        drawn.values().sum()
    }

    /// Returns the flows: the ids and the start times of the slices at which each begins and ends.
    pub fn flows(&self) -> BTreeSet<[(u64, u64); 2]> {
        let by_id: HashMap<u64, SpanSlice> =
            self.drawn(false).into_iter().map(|(slice, found)| (slice["id"].number(), found)).collect();
        let end = |id: &Value| by_id.get(&id.number()).map(|(span, _, start, _)| (*span, *start)).unwrap();
        let flows = self.answers["flows"].list().iter();
        flows.map(|flow| [end(&flow["begin"]), end(&flow["end"])]).collect()
    }

    /// Returns the flows that the lines tell, as [`Self::flows`] does: those from a parent to a child whose first slice
    /// is on another thread. No span of the recording follows from another.
    pub fn expected_flows(&self) -> BTreeSet<[(u64, u64); 2]> {
        let spans: HashMap<u64, &Value> = self.of_type("span").map(|span| (id(span), span)).collect();
        let mut flows = BTreeSet::new();
        for span in spans.values() {
            let created = span["start_ns"].number();
            let parent = span["parent"].as_u64().and_then(|parent| spans.get(&parent));
            let (Some(parent), Some(first)) = (parent, span["slices"].get(0)) else { continue };
            let start = |slice: &Value| slice["start_ns"].number();
            // The arrow begins at the slice of the parent in which the child was created. If the parent was idle then,
            // the arrow begins at the last slice of the parent before the first one of the child.
            let of_parent = parent["slices"].list();
            let last =
                |until: u64| of_parent.iter().filter(|slice| start(slice) <= until).max_by_key(|slice| start(slice));
            let is_in = |slice: &&Value| slice["end_ns"].as_u64().is_none_or(|end| end >= created);
            let from = last(created).filter(is_in).or_else(|| last(start(first) - 1));
            if let Some(from) = from.filter(|from| from["thread"]["id"] != first["thread"]["id"]) {
                flows.insert([(id(parent), start(from)), (id(span), start(first))]);
            }
        }
        flows
    }
}

fn id(span: &Value) -> u64 {
    span["id"].number()
}

/// Checks that the depth of each slice is the number of slices of its track around it.
fn assert_depths(mut slices: Vec<(&Value, SpanSlice)>) {
    let end = |slice: &Value| match slice["dur"].as_i64().unwrap() {
        -1 => u64::MAX,
        duration => slice["ts"].number() + duration.unsigned_abs(),
    };
    slices.sort_by_key(|(slice, (.., start, _))| (slice["track"].as_u64(), *start, Reverse(end(slice))));
    let (mut track, mut around) = (None, Vec::new());
    for (slice, (.., start, _)) in slices {
        if track != slice["track"].as_u64() {
            (track, around) = (slice["track"].as_u64(), Vec::new());
        }
        around.retain(|end| *end > start);
        assert_eq!(slice["depth"], around.len(), "{slice}");
        around.push(end(slice));
    }
}
