//! Slices, instants and samples of counters. A trace has many of them, so they are encoded without an allocation.

use super::intern::{Interner, Kind, source_location};
use super::sequence::Sequence;
use super::wire::{begin, bytes, end, fixed64, uint};
use super::{colours, fields};
use crate::args::{ArgValue, Args, CUT};
use crate::formats::trace_writer::{Label, TrackId};
use eventring::schema::perf::FieldValue;

/// A `TrackEvent`.
pub(super) struct Event<'a> {
    pub(super) r#type: u32,
    pub(super) label: Option<Label<'a>>,
    pub(super) args: &'a Args,
    /// The value of a counter.
    pub(super) value: Option<&'a FieldValue>,
}

impl Event<'_> {
    /// Appends the event as a packet of a trace. The packet has no `SEQ_NEEDS_INCREMENTAL_STATE`: this flag tells a
    /// reader to skip the packet if earlier packets of its sequence were lost, and the trace is written as a whole.
    pub(super) fn encode(&self, out: &mut Vec<u8>, sequence: &mut Sequence, track: TrackId, nanos: u64) {
        let packet = begin(out, fields::PACKET);
        sequence.stamp(out, nanos);
        let event = begin(out, fields::TRACK_EVENT);
        uint(out, fields::EVENT_TYPE, self.r#type.into());
        sequence.name_track(out, track);
        if let Some(label) = &self.label {
            put_label(out, &mut sequence.names, label);
        }
        put_args(out, &mut sequence.names, self.args);
        if let Some(value) = self.value {
            put_value(out, value);
        }
        end(out, event);
        sequence.names.move_new_to(out);
        end(out, packet);
    }
}

/// Appends a text: its number if it is interned, otherwise the text itself.
fn put_text(out: &mut Vec<u8>, names: &mut Interner, kind: Kind, (iid_field, field): (u32, u32), text: &str) {
    match names.iid(kind, text) {
        Some(iid) => uint(out, iid_field, iid),
        None => bytes(out, field, text.as_bytes()),
    }
}

fn put_label(out: &mut Vec<u8>, names: &mut Interner, label: &Label<'_>) {
    if !label.category.is_empty() {
        put_text(out, names, Kind::Category, (fields::CATEGORY_IIDS, fields::CATEGORIES), label.category);
    }
    put_text(out, names, Kind::EventName, (fields::NAME_IID, fields::NAME), label.name);
    if let Some((file, line)) = label.source {
        match names.source(file, line) {
            Some(iid) => uint(out, fields::SOURCE_LOCATION_IID, iid),
            None => {
                let location = begin(out, fields::SOURCE_LOCATION);
                source_location(out, file, line);
                end(out, location);
            }
        }
    }
    if let Some(alert) = label.alert {
        let fields = (fields::CORRELATION_ID_STR_IID, fields::CORRELATION_ID_STR);
        put_text(out, names, Kind::CorrelationId, fields, colours::correlation_id(alert));
    }
    label.flows.begins.iter().for_each(|flow| fixed64(out, fields::FLOW_IDS, flow.0));
    label.flows.ends.iter().for_each(|flow| fixed64(out, fields::TERMINATING_FLOW_IDS, flow.0));
}

fn put_args(out: &mut Vec<u8>, names: &mut Interner, args: &Args) {
    for arg in &args.0 {
        put_annotation(out, names, fields::DEBUG_ANNOTATIONS, &arg.name, &arg.value);
    }
    if args.0.iter().any(|arg| arg.cut.is_some()) {
        let cuts = begin(out, fields::DEBUG_ANNOTATIONS);
        put_annotation_name(out, names, CUT);
        for (name, cut) in args.0.iter().filter_map(|arg| Some((&arg.name, arg.cut.as_ref()?))) {
            put_annotation(out, names, fields::DICT_ENTRIES, name, cut);
        }
        end(out, cuts);
    }
}

fn put_annotation(out: &mut Vec<u8>, names: &mut Interner, field: u32, name: &str, value: &ArgValue) {
    let annotation = begin(out, field);
    put_annotation_name(out, names, name);
    let mut text = |out: &mut Vec<u8>, text: &str| {
        let fields = (fields::STRING_VALUE_IID, fields::STRING_VALUE);
        put_text(out, names, Kind::AnnotationValue, fields, text);
    };
    match value {
        ArgValue::Int(value) => uint(out, fields::INT_VALUE, value.cast_unsigned()),
        ArgValue::Uint(value) => uint(out, fields::UINT_VALUE, *value),
        ArgValue::Float(value) => fixed64(out, fields::DOUBLE_VALUE, value.to_bits()),
        ArgValue::Bool(value) => uint(out, fields::BOOL_VALUE, (*value).into()),
        ArgValue::Text(value) => text(out, value),
        ArgValue::Unknown => text(out, "unknown"),
    }
    end(out, annotation);
}

fn put_annotation_name(out: &mut Vec<u8>, names: &mut Interner, name: &str) {
    put_text(out, names, Kind::AnnotationName, (fields::ANNOTATION_NAME_IID, fields::ANNOTATION_NAME), name);
}

fn put_value(out: &mut Vec<u8>, value: &FieldValue) {
    let integer = match value {
        FieldValue::I64(value) => Some(*value),
        FieldValue::U64(value) => i64::try_from(*value).ok(),
        _ => None,
    };
    if let Some(value) = integer {
        uint(out, fields::COUNTER_VALUE, value.cast_unsigned());
    } else if let Some(value) = value.as_f64() {
        fixed64(out, fields::DOUBLE_COUNTER_VALUE, value.to_bits());
    }
}
