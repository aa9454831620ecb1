//! The options with which verbs such as `watch` and `capture` select events. Each option except `--type` becomes a
//! condition.

use crate::condition::{Condition, EventSubject, NameKind, SeenContent, Truth};
use eventring::schema::SchemaModel;
use eventring::schema::perf::CallSiteLevel;
use std::collections::HashSet;
use std::fmt;

/// A selection of events by what they are about. A new one selects all events.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EventSelection {
    /// Only events of these types: names in the schema of their ring, or codes.
    pub types: Vec<String>,
    /// Only spans of these names, with everything in them.
    pub spans: Vec<String>,
    /// Only spans that last this long at least, in nanoseconds, with everything in them.
    pub min_nanos: u64,
    /// Only what these threads have recorded: their names, or the system's numbers of them.
    pub threads: Vec<String>,
    /// Only spans and log records of these targets.
    pub targets: Vec<String>,
    /// Only spans and log records of at most this level.
    pub level: Option<CallSiteLevel>,
    /// Only what fulfils the condition: spans with everything in them, log records, marks and typed events.
    pub condition: Option<Condition>,
}

impl EventSelection {
    /// Returns true if all events are selected.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what spans and other events must fulfil. What is in a span that fulfils one of these fulfils it, too.
    pub(crate) fn around(&self) -> Vec<Condition> {
        let spans = (!self.spans.is_empty()).then(|| Condition::any_name(NameKind::Span, &self.spans));
        let lasting = (self.min_nanos > 0).then(|| Condition::lasting(self.min_nanos));
        let by_option: Vec<Condition> = spans.into_iter().chain(lasting).collect();
        let by_option = (!by_option.is_empty()).then(|| Condition::all(by_option));
        by_option.into_iter().chain(self.condition.clone()).collect()
    }

    /// Returns what each event must fulfil by itself.
    pub(crate) fn each(&self) -> Vec<Condition> {
        let threads = (!self.threads.is_empty()).then(|| Condition::any_name(NameKind::Thread, &self.threads));
        let targets = (!self.targets.is_empty()).then(|| Condition::any_name(NameKind::Target, &self.targets));
        let level = self.level.map(Condition::at_most);
        threads.into_iter().chain(targets).chain(level).collect()
    }

    /// Returns the codes of the selected types in a ring with this schema; `None` if all are selected. The same code
    /// means other things in another schema.
    #[must_use]
    pub fn codes(&self, model: Option<&SchemaModel>) -> Option<HashSet<u16>> {
        let code = |name: &String| {
            let of_model = model.and_then(|model| model.event_by_name(name)).map(|event| event.code());
            of_model.or_else(|| name.parse().ok())
        };
        (!self.types.is_empty()).then(|| self.types.iter().filter_map(code).collect())
    }
}

/// Returns whether an event fulfils all of these by itself.
pub(crate) fn fits_each(conditions: &[Condition], event: SeenContent<'_>) -> Truth {
    let event = EventSubject { event, replay: None, by_option: true };
    conditions.iter().map(|condition| condition.truth(&event)).min().unwrap_or(Truth::Yes)
}

/// Says what the options are, as files have it.
impl fmt::Display for EventSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = |what: &'static str, names: &[String]| -> Vec<String> {
            names.iter().map(|name| format!("{what}={name}")).collect()
        };
        let level = self.level.and_then(CallSiteLevel::name).map(|level| format!("level={}", level.to_lowercase()));
        let lasting = (self.min_nanos > 0).then(|| format!("dur>={}ns", self.min_nanos));
        let condition = self.condition.as_ref().map(|condition| format!("where={condition}"));
        let all = [
            named("type", &self.types),
            level.into_iter().collect(),
            named("target", &self.targets),
            named("thread", &self.threads),
            named("span", &self.spans),
            lasting.into_iter().chain(condition).collect(),
        ];
        f.write_str(&all.concat().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::schema::EventType as _;
    use eventring::schema::exec::ExecEvent;

    #[test]
    fn a_selection_says_all_of_its_options() {
        let named = |name: &str| vec![name.to_owned()];
        let selection = EventSelection {
            types: named("A"),
            spans: named("request"),
            min_nanos: 5,
            threads: named("main"),
            targets: named("shop"),
            level: Some(CallSiteLevel::Info),
            condition: Some("field.x=1".parse().unwrap()),
        };
        let said = "type=A level=info target=shop thread=main span=request dur>=5ns where=field.x=1";
        assert_eq!(selection.to_string(), said);
    }

    #[test]
    fn types_are_named_by_their_codes_and_by_their_names_in_the_schema_of_the_ring() {
        let types = ["7", "TXN_LOG", "OTHER"].map(str::to_owned).to_vec();
        let selection = EventSelection { types, ..EventSelection::default() };
        let log = ExecEvent::TxnLog.code();
        let schema = ExecEvent::schema();
        assert_eq!(selection.codes(Some(schema.model().unwrap())), Some(HashSet::from([7, log])));
        assert_eq!(selection.codes(None), Some(HashSet::from([7])));
        assert_eq!(EventSelection::default().codes(None), None);
    }
}
