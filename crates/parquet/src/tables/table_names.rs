//! The names of the tables of typed events. They depend on the schemas of the rings, and not on the order of events.

use eventring::schema::Hex;
use eventring_capture::CapturedRing;
use eventring_capture::recording::CaptureRecording;
use std::collections::{HashMap, HashSet};

/// The largest number of characters of an event's name in the name of a table.
const NAME_MAX: usize = 100;
/// The name of the table of all event types that have no table of their own.
pub(crate) const OTHER: &str = "events-other";

/// An event type: the number of its schema, and its code.
pub(crate) type EventKey = (usize, u16);

/// The names of tables, for all schemas that were seen so far.
pub(crate) struct TableNames {
    /// The schemas, with their numbers.
    schemas: HashMap<SchemaKey, usize>,
    /// The hashes of the schemas, by number.
    hashes: Vec<[u8; 32]>,
    names: HashMap<EventKey, String>,
    /// All names, in lower case.
    taken: HashSet<String>,
}

/// The content type and the schema hash of a ring, and whether the schema is known. A ring with a known hash may have
/// no schema text.
type SchemaKey = (u16, [u8; 32], bool);

impl Default for TableNames {
    fn default() -> Self {
        let taken = HashSet::from([OTHER.to_owned()]);
        Self { schemas: HashMap::new(), hashes: Vec::new(), names: HashMap::new(), taken }
    }
}

impl TableNames {
    /// Gives a name to the table of each event type that the schema of `ring` declares, unless they have names already.
    /// Returns the number of the schema, and true if the schema is new. The rings come in the order of the recording.
    pub(crate) fn learn(&mut self, recording: &CaptureRecording<'_>, ring: u32) -> (usize, bool) {
        let CapturedRing { content_type, schema_hash, .. } = *recording.ring(ring);
        let model = recording.rings().model(ring);
        let key = (content_type, schema_hash, model.is_some());
        if let Some(schema) = self.schemas.get(&key) {
            return (*schema, false);
        }
        let schema = self.hashes.len();
        self.schemas.insert(key, schema);
        self.hashes.push(schema_hash);
        for event in model.into_iter().flat_map(|model| model.events()) {
            self.insert((schema, event.code()), event.name(), false);
        }
        (schema, true)
    }

    /// Returns the name of the table for an event type. `event_name` is the name of the events.
    pub(crate) fn name(&mut self, key: EventKey, event_name: &str) -> &str {
        let (schema, code) = key;
        if !self.names.contains_key(&key) {
            // The schema does not declare this event. Then its name is its code, which all such schemas share.
            let is_declared = |earlier: usize| self.names.contains_key(&(earlier, code));
            let has_suffix = !(0..schema).all(is_declared);
            self.insert(key, event_name, has_suffix);
        }
        &self.names[&key]
    }

    /// Gives a name to a table. If another table has it, or if `has_suffix` is true, a part of the schema hash follows
    /// the name. A hash in a file may be false, so the code and the number of the schema may follow, too.
    fn insert(&mut self, key: EventKey, event_name: &str, has_suffix: bool) {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
        let name: String = event_name.chars().take(NAME_MAX).map(plain).collect();
        let mut unique = format!("events-{name}");
        if has_suffix || !self.taken.insert(unique.to_lowercase()) {
            unique = format!("{unique}-{}", Hex(&self.hashes[key.0][..4]));
            if !self.taken.insert(unique.to_lowercase()) {
                unique = format!("{unique}-{}-{}", key.1, key.0);
                while !self.taken.insert(unique.to_lowercase()) {
                    unique.push('_');
                }
            }
        }
        self.names.insert(key, unique);
    }
}
