//! The perf events, of every kind, that the soak records, and the function that checks them. The content of an event's
//! fields, value or text shows whether the event is torn.

use crate::checksum::Checksum;
use eventring::schema::perf::FieldValue;
use eventring::tracing::{Counter, Fields, FieldsProblem, Marker, PerfContent, PerfRecorder, RecorderSubscriber};
use tracing_core::callsite::{Callsite as _, DefaultCallsite};
use tracing_core::field::Value;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Dispatch, Event, Kind, Level, Metadata, metadata};

static SPAN: DefaultCallsite = {
    static META: Metadata<'static> = metadata! {
        name: "work", target: "eventring::soak", level: Level::INFO,
        fields: &["thread", "turn", "text", "seal", "late"], callsite: &SPAN, kind: Kind::SPAN,
    };
    DefaultCallsite::new(&META)
};
static LOG: DefaultCallsite = {
    static META: Metadata<'static> = metadata! {
        name: "event", target: "eventring::soak", level: Level::WARN,
        fields: &["thread", "turn", "text", "seal"], callsite: &LOG, kind: Kind::EVENT,
    };
    DefaultCallsite::new(&META)
};
static PROGRESS: Counter = Counter::new("progress");
static MARK: Marker = Marker::new("mark");

/// An upper bound of the length of a field's text, in bytes. The recorder would cut longer texts.
const TEXT_BYTES_MAX: u64 = 1500;

/// Recording state of one thread.
pub(crate) struct SpanStress {
    dispatch: Dispatch,
    recorder: PerfRecorder,
    thread: u64,
    turn: u64,
    previous: Option<Id>,
}

impl SpanStress {
    pub(crate) fn new(recorder: PerfRecorder, thread: u64) -> Self {
        let dispatch = Dispatch::new(RecorderSubscriber::new(recorder.clone()));
        Self { dispatch, recorder, thread, turn: 0, previous: None }
    }

    /// Records one span, with every kind of event that a span can have.
    pub(crate) fn turn(&mut self) {
        self.turn += 1;
        let text = text(self.turn);
        let seal = seal(self.thread, self.turn, &text);
        let meta = SPAN.metadata();
        let fields = meta.fields();
        let named = |name| fields.field(name);
        let (Some(thread), Some(turn), Some(words), Some(sealed), Some(late)) =
            (named("thread"), named("turn"), named("text"), named("seal"), named("late"))
        else {
            return;
        };
        let values: [(&_, Option<&dyn Value>); 4] = [
            (&thread, Some(&self.thread)),
            (&turn, Some(&self.turn)),
            (&words, Some(&text.as_str())),
            (&sealed, Some(&seal)),
        ];
        let span = self.dispatch.new_span(&Attributes::new(meta, &fields.value_set(&values)));
        self.dispatch.enter(&span);
        self.log(&text, seal);
        PROGRESS.sample_to(&self.recorder, counted(self.turn));
        MARK.mark_to(&self.recorder, &format!("{} {seal} {text}", self.turn));
        let value = counted(self.turn);
        let later: [(&_, Option<&dyn Value>); 1] = [(&late, Some(&value))];
        self.dispatch.record(&span, &Record::new(&fields.value_set(&later)));
        let follows = self.dispatch.clone_span(&span);
        self.dispatch.exit(&span);
        if let Some(previous) = self.previous.replace(follows) {
            self.dispatch.record_follows_from(&span, &previous);
            self.dispatch.try_close(previous);
        }
        self.dispatch.try_close(span);
    }

    fn log(&self, text: &str, seal: u64) {
        let meta = LOG.metadata();
        let fields = meta.fields();
        let mut named = fields.iter();
        if let [Some(thread), Some(turn), Some(words), Some(sealed)] = std::array::from_fn(|_| named.next()) {
            let values: [(&_, Option<&dyn Value>); 4] = [
                (&thread, Some(&self.thread)),
                (&turn, Some(&self.turn)),
                (&words, Some(&text)),
                (&sealed, Some(&seal)),
            ];
            self.dispatch.event(&Event::new(meta, &fields.value_set(&values)));
        }
    }
}

impl Drop for SpanStress {
    fn drop(&mut self) {
        if let Some(previous) = self.previous.take() {
            self.dispatch.try_close(previous);
        }
    }
}

/// Returns a text that is short in most turns.
fn text(turn: u64) -> String {
    let bytes = if turn.is_multiple_of(16) { turn * 37 % TEXT_BYTES_MAX } else { turn % 60 };
    (0..bytes).map(|at| char::from(b'a' + (turn.wrapping_mul(31).wrapping_add(at * at) % 26) as u8)).collect()
}

fn seal(thread: u64, turn: u64, text: &str) -> u64 {
    let mut sum = Checksum::new(0, [thread, turn, 0], 0);
    sum.add(text.as_bytes());
    sum.finish()
}

/// Returns a number with `turn` in its low half, and with a check value computed from `turn` in its high half.
fn counted(turn: u64) -> u64 {
    let turn = turn & 0xffff_ffff;
    turn | (turn ^ 0x5a5a_5a5a) << 32
}

fn is_counted(value: Option<&FieldValue>) -> bool {
    matches!(value, Some(FieldValue::U64(value)) if *value == counted(*value))
}

/// Result of the check of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Whole,
    Expired,
    Torn,
}

/// Checks an event.
pub(crate) fn check(content: &PerfContent) -> Verdict {
    let is_whole = match content {
        PerfContent::SpanNew { fields, .. }
        | PerfContent::Event { fields, .. }
        | PerfContent::SpanRecord { fields, .. }
            if fields.problem == Some(FieldsProblem::Expired) =>
        {
            return Verdict::Expired;
        }
        PerfContent::SpanNew { fields, .. } | PerfContent::Event { fields, .. } => is_sealed(fields),
        PerfContent::SpanRecord { fields, .. } => {
            fields.is_complete()
                && fields.values.len() == 1
                && is_counted(fields.values.first().map(|late| &late.value))
        }
        PerfContent::Counter { value, .. } => is_counted(Some(value)),
        PerfContent::Marker { text: None, .. } => return Verdict::Expired,
        PerfContent::Marker { text: Some(marked), .. } => marked.split_once(' ').is_some_and(|(turn, rest)| {
            turn.parse().is_ok_and(|turn: u64| rest.ends_with(&format!(" {}", text(turn))))
        }),
        PerfContent::Unknown { .. } => false,
        // Events of the other kinds carry no check of their own. Either their payload is empty, or it describes a call
        // site or thread, and the reader has already decoded and checked it.
        _ => true,
    };
    if is_whole { Verdict::Whole } else { Verdict::Torn }
}

fn is_sealed(fields: &Fields) -> bool {
    let number = |index: u8| {
        fields.values.iter().find(|field| field.index == index).and_then(|field| match field.value {
            FieldValue::U64(number) => Some(number),
            _ => None,
        })
    };
    let words = fields.values.iter().find(|field| field.index == 2).map(|field| &field.value);
    match (number(0), number(1), words, number(3)) {
        (Some(thread), Some(turn), Some(FieldValue::Str(words)), Some(sealed)) => {
            fields.is_complete() && seal(thread, turn, words) == sealed
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::tracing::{PerfItem, PerfReader};

    #[test]
    fn recorded_events_are_whole_and_changed_events_are_torn() {
        let recorder = PerfRecorder::builder().anonymous().shifts(15, 21).shards(1).build().unwrap();
        let mut stress = SpanStress::new(recorder.clone(), 7);
        (0..40).for_each(|_| stress.turn());
        drop(stress);
        let mut reader = PerfReader::from_shards(recorder.open_readers().unwrap());
        let (mut kinds, mut sealed) = (std::collections::HashSet::new(), 0);
        while let Some(PerfItem::Record(record)) = reader.next() {
            kinds.insert(std::mem::discriminant(&record.content));
            assert_eq!(check(&record.content), Verdict::Whole, "{record:?}");
            if let PerfContent::SpanNew { mut fields, span, parent, call_site, flags } = record.content {
                sealed += 1;
                fields.values[1].value = FieldValue::U64(0);
                let changed = PerfContent::SpanNew { fields, span, parent, call_site, flags };
                assert_eq!(check(&changed), Verdict::Torn);
            }
        }
        assert_eq!(sealed, 40);
        // The 11 kinds are thread, call site, new, record, enter, exit, close, follows from, event, counter and
        // marker.
        assert!(kinds.len() >= 11, "{}", kinds.len());
    }
}
