//! The tables of typed events: which events have a table of their own, and which share one.

use super::table::{ParquetTable, create_empty};
use super::table_names::{EventKey, OTHER, TableNames};
use super::table_sink::TableSink;
use crate::columns::row_columns::{RowColumns, TableSetup};
use arrow_schema::{Schema, SchemaRef};
use eventring::reader::{Descriptor, PayloadRead};
use eventring_capture::recording::CaptureRecording;
use eventring_export::rows::TypedRow;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

/// The column with the time by which events and records are sorted.
pub(crate) const TIME: &str = "time_ns";

/// The largest number of event types that get a table of their own. A program has no more open files for them.
const OWN_TABLES_MAX: usize = 200;

/// The tables of typed events. One is begun when its first event comes.
pub(crate) struct TypedTables<'o> {
    recording: &'o CaptureRecording<'o>,
    /// For each ring, the number of its schema.
    schemas: Vec<usize>,
    tables: Vec<ParquetTable>,
    /// The index in `tables` for each event type that has a table of its own.
    indices: HashMap<EventKey, usize>,
    /// The index in `tables` of the table of all further event types.
    other: Option<usize>,
    known: KnownTypes,
}

/// The event types that are known so far. Each batch of a recording hands them on to the next one, so that an event
/// type has the same table in all batches.
#[derive(Default)]
pub(crate) struct KnownTypes {
    names: TableNames,
    /// The names and the columns of the tables of event types that have one of their own.
    own: BTreeMap<EventKey, (String, SchemaRef)>,
    /// The columns of the table of all further event types, if there is one.
    other: Option<SchemaRef>,
}

impl<'o> TypedTables<'o> {
    /// Makes the tables. If `has_declared` is true, each event type that a schema declares gets its own table before
    /// any event comes, as far as there is room.
    pub(crate) fn new(recording: &'o CaptureRecording<'o>, mut known: KnownTypes, has_declared: bool) -> Self {
        let mut schemas = Vec::new();
        for (index, ring) in (0..).zip(recording.capture.rings()) {
            // The records of a perf ring are no typed events.
            let (schema, is_new) = if ring.is_perf() { (0, false) } else { known.names.learn(recording, index) };
            schemas.push(schema);
            let model = recording.rings().model(index).filter(|_| has_declared && is_new);
            for event in model.into_iter().flat_map(|model| model.events()) {
                if known.own.len() < OWN_TABLES_MAX {
                    let key = (schema, event.code());
                    let columns = columns_of(recording, index, event.code(), false).fields();
                    let name = known.names.name(key, event.name()).to_owned();
                    known.own.insert(key, (name, Arc::new(Schema::new(columns))));
                }
            }
        }
        Self { recording, schemas, tables: Vec::new(), indices: HashMap::new(), other: None, known }
    }

    /// Returns the table for an event, and the number of columns that were added for it: 0 if the table was there.
    pub(crate) fn of_event(
        &mut self,
        ring: u32,
        code: u16,
        out: &mut dyn TableSink,
    ) -> io::Result<(&mut ParquetTable, usize)> {
        let key = (self.schemas[ring as usize], code);
        if let Some(index) = self.indices.get(&key).copied() {
            return Ok((&mut self.tables[index], 0));
        }
        let has_own = self.known.own.contains_key(&key) || self.known.own.len() < OWN_TABLES_MAX;
        if let Some(index) = self.other.filter(|_| !has_own) {
            return Ok((&mut self.tables[index], 0));
        }
        let columns = columns_of(self.recording, ring, code, !has_own);
        let index = self.tables.len();
        let table = if has_own {
            let name = self.known.names.name(key, &self.recording.rings().event_name(ring, code));
            let table = ParquetTable::create(columns, name, TIME, out)?;
            self.indices.insert(key, index);
            self.known.own.entry(key).or_insert_with(|| (name.to_owned(), table.schema().clone()));
            table
        } else {
            let table = ParquetTable::create(columns, OTHER, TIME, out)?;
            self.other = Some(index);
            self.known.other.get_or_insert_with(|| table.schema().clone());
            table
        };
        let column_count = table.column_count();
        self.tables.push(table);
        Ok((&mut self.tables[index], column_count))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ParquetTable> {
        self.tables.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut ParquetTable> {
        self.tables.iter_mut()
    }

    /// Creates the known tables that no event has come for, and returns the known event types for the next batch.
    pub(crate) fn hand_on(self, out: &mut dyn TableSink) -> io::Result<KnownTypes> {
        let without_rows = self.known.own.iter().filter(|(key, _)| !self.indices.contains_key(*key));
        for (_, (name, schema)) in without_rows {
            create_empty(name, schema, TIME, out)?;
        }
        if let Some(schema) = self.known.other.as_ref().filter(|_| self.other.is_none()) {
            create_empty(OTHER, schema, TIME, out)?;
        }
        Ok(self.known)
    }
}

/// Makes the columns of the event with this code in the schema of `ring`, or of any events.
fn columns_of(recording: &CaptureRecording<'_>, ring: u32, code: u16, has_several_types: bool) -> RowColumns {
    let example = Descriptor { event_type: code, ..Descriptor::default() };
    let row = TypedRow::new(recording, (0, ring), &example, PayloadRead::Expired, None);
    RowColumns::new(&row, TableSetup { has_several_types, ..TableSetup::default() })
}
