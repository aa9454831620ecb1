//! The facts about spans and events, in the form of the reference, made from the records of a perf reader.

use super::{EventFacts, Facts};
use eventring::schema::perf::{CallSiteLevel, FieldValue};
use eventring::tracing::{Fields, PerfContent, PerfItem, PerfReader, PerfRecord, SpanId, SpanTree};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Reads all events that are in the rings now. Ends when no event comes for 20 ms or when the writer has ended.
/// Panics if there is a gap.
pub fn records(reader: &mut PerfReader) -> Vec<PerfRecord> {
    let mut records = Vec::new();
    while let Some(item) = reader.next_timeout(Duration::from_millis(20)) {
        match item {
            PerfItem::Record(record) => records.push(record),
            PerfItem::TypedEvent(_) => {}
            PerfItem::Gap { source, gap } => panic!("{gap:?} in {source:?}"),
        }
    }
    records
}

/// Returns the fields of the log records.
pub fn log_fields(records: &[PerfRecord]) -> Vec<&Fields> {
    let fields = |record| match record {
        &PerfRecord { content: PerfContent::Event { ref fields, .. }, .. } => Some(fields),
        _ => None,
    };
    records.iter().filter_map(fields).collect()
}

fn print(fields: &Fields) -> BTreeMap<String, String> {
    assert!(fields.problem.is_none() && fields.missing == 0, "{fields:?}");
    fields.values.iter().map(|field| (field.name.to_string(), field.value.to_string())).collect()
}

fn uid(fields: &Fields) -> u64 {
    match fields.get("uid") {
        Some(FieldValue::U64(uid)) => *uid,
        other => panic!("uid is {other:?}"),
    }
}

fn level(level: CallSiteLevel) -> String {
    format!("{level:?}").to_uppercase()
}

/// Returns the facts that the ring holds.
pub fn read_back(reader: &mut PerfReader) -> Facts {
    facts_of(&records(reader))
}

/// Returns the facts that these records contain.
pub fn facts_of(records: &[PerfRecord]) -> Facts {
    let tree = SpanTree::from_records(records);
    let uids: HashMap<SpanId, u64> = tree.iter().map(|span| (span.id, uid(&span.fields))).collect();
    let mut facts = Facts::default();
    for span in tree.iter() {
        assert!(!span.may_have_losses, "{span:?}");
        let call_site = span.call_site.as_ref().unwrap();
        let entry = facts.spans.entry(uids[&span.id]).or_default();
        assert!(entry.name.is_empty(), "uid {} twice", uids[&span.id]);
        entry.name.clone_from(&call_site.name);
        entry.target.clone_from(&call_site.target);
        entry.parent = span.parent.map(|parent| uids[&parent]);
        entry.fields = print(&span.fields);
        entry.follows = span.follows_from.iter().map(|id| uids[id]).collect();
        entry.is_closed = span.closed.is_some();
    }
    let mut closes = HashMap::new();
    for record in records {
        // A CALL_SITE event belongs to no thread.
        let thread = record.thread.os_thread_id.unwrap_or(0);
        assert!(thread != 0 || matches!(record.content, PerfContent::CallSite(_)), "an unknown thread: {record:?}");
        match &record.content {
            PerfContent::SpanEnter { span, .. } => {
                facts.spans.get_mut(&uids[span]).unwrap().stays.entry(thread).or_default().push('E');
            }
            PerfContent::SpanExit { span, .. } => {
                facts.spans.get_mut(&uids[span]).unwrap().stays.entry(thread).or_default().push('X');
            }
            PerfContent::SpanClose { span, .. } => *closes.entry(*span).or_insert(0) += 1,
            PerfContent::Event { span, call_site, fields } => {
                let event = EventFacts {
                    target: call_site.target.clone(),
                    level: level(call_site.level),
                    span: span.map(|span| uids[&span]),
                    fields: print(fields),
                    thread,
                };
                assert!(facts.events.insert(uid(fields), event).is_none());
            }
            PerfContent::NotRecorded { .. } | PerfContent::Unknown { .. } => panic!("{record:?}"),
            _ => {}
        }
    }
    assert!(closes.values().all(|count| *count == 1), "closed more than once: {closes:?}");
    facts
}
