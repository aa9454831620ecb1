//! The first pass: the names of the fields in a capture, and the types of their values.

use arrow_schema::DataType;
use eventring::schema::perf::{PerfEvent, RawField, RawFields, ValueType};
use eventring::tracing::{Catalog, IdMap, RawRecord};
use eventring_capture::CaptureError;
use eventring_capture::recording::{CHECK_BYTES, CaptureRecording, EntryContent, RecordingEntry};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of fields that get a column of their own. The column `fields` has all fields.
const COLUMNS_MAX: usize = 256;
/// An estimate of the bytes that a field of a call site takes.
const FIELD_BYTES: u64 = 64;

/// The fields of spans and those of log records.
#[derive(Default)]
pub(super) struct FieldTypes {
    pub(super) spans: Vec<TypedField>,
    pub(super) logs: Vec<TypedField>,
}

/// A field that gets a column of its own.
#[derive(Clone)]
pub(super) struct TypedField {
    pub(super) name: Arc<str>,
    /// The type of the column. A column of texts takes values of any types.
    pub(super) ty: DataType,
}

/// The bit of all types that this program does not know, in a set of types.
const UNKNOWN_TYPE: u32 = 1 << 30;
/// A further bit of such a set: an integer without a sign was too large for one with a sign.
const LARGE: u32 = 1 << 31;

/// The types of a field's values, as a set of bits: each type has the bit with the number of its code.
#[derive(Default)]
struct TypeSets {
    names: Vec<Arc<str>>,
    sets: HashMap<Arc<str>, u32>,
}

impl FieldTypes {
    pub(super) fn read(recording: &CaptureRecording<'_>) -> Result<Self, CaptureError> {
        let (mut spans, mut logs) = (TypeSets::default(), TypeSets::default());
        let mut seen = SeenTypes::default();
        let mut unchecked_bytes = 0;
        let mut entries = recording.entries();
        while let Some(entry) = entries.next_entry() {
            unchecked_bytes += size_of::<RecordingEntry<'_>>();
            if let EntryContent::Perf { recorder, record, catalog } = &entry.content {
                unchecked_bytes += record.payload.valid().map_or(0, <[u8]>::len);
                learn((*recorder, record, catalog), (&mut spans, &mut logs), &mut seen);
            }
            if unchecked_bytes >= CHECK_BYTES {
                unchecked_bytes = 0;
                // The entries themselves keep the descriptions of call sites and threads.
                entries.check_kept(seen.len() as u64 * FIELD_BYTES)?;
            }
        }
        Ok(Self { spans: spans.columns(|_| true), logs: logs.columns(|name| !is_of_log(name)) })
    }
}

/// The types that were seen already: for each field of a recorder's call site, a set of bits.
type SeenTypes = IdMap<(u32, u32, u8), u32>;

/// Notes the types of the fields of a record.
fn learn(
    (recorder, record, catalog): (u32, &RawRecord<'_>, &Catalog),
    (spans, logs): (&mut TypeSets, &mut TypeSets),
    seen: &mut SeenTypes,
) {
    let Some((sets, payload)) = fields_of(record, spans, logs) else { return };
    let site_id = record.ext.call_site_id;
    for field in RawFields::new(payload).filter_map(Result::ok) {
        let set = seen.entry((recorder, site_id, field.index)).or_default();
        let bits = bits_of(&field);
        if *set & bits != bits {
            let known = catalog.known_call_site(site_id);
            if let Some(name) = known.and_then(|site| site.field_names.get(usize::from(field.index))) {
                *set |= bits;
                sets.add(name, bits);
            }
        }
    }
}

/// Returns the bits that a set of types has if it contains the type of this field.
fn bits_of(field: &RawField<'_>) -> u32 {
    let ty = 1_u32.checked_shl(field.type_code.into()).filter(|bit| *bit < UNKNOWN_TYPE).unwrap_or(UNKNOWN_TYPE);
    let is_large = field.type_code == ValueType::U64 as u8
        && <[u8; 8]>::try_from(field.value).is_ok_and(|value| u64::from_le_bytes(value) > i64::MAX as u64);
    if is_large { ty | LARGE } else { ty }
}

/// Returns true if the field of a log record has no column of its own: `message` is a column already, and the fields of
/// the crate `tracing-log` are those of the call site.
fn is_of_log(name: &str) -> bool {
    name == MESSAGE || name.starts_with("log.")
}

/// The field with the text of a log record.
pub(super) const MESSAGE: &str = "message";

fn fields_of<'a, 'p>(
    record: &RawRecord<'p>,
    spans: &'a mut TypeSets,
    logs: &'a mut TypeSets,
) -> Option<(&'a mut TypeSets, &'p [u8])> {
    let sets = match record.event {
        Some(PerfEvent::SpanNew | PerfEvent::SpanRecord) => spans,
        Some(PerfEvent::Event) => logs,
        _ => return None,
    };
    Some((sets, record.payload.valid()?))
}

impl TypeSets {
    fn add(&mut self, name: &Arc<str>, bits: u32) {
        if let Some(set) = self.sets.get_mut(name) {
            *set |= bits;
        } else if self.names.len() < COLUMNS_MAX {
            self.names.push(name.clone());
            self.sets.insert(name.clone(), bits);
        }
    }

    /// Returns the columns in the order in which their fields were first seen.
    fn columns(self, is_wanted: impl Fn(&str) -> bool) -> Vec<TypedField> {
        let ty = |name: &Arc<str>| column_type(self.sets.get(name).copied().unwrap_or_default());
        let wanted = self.names.iter().filter(|name| is_wanted(name));
        wanted.map(|name| TypedField { name: name.clone(), ty: ty(name) }).collect()
    }
}

/// Returns the type that takes values of all types in the set.
fn column_type(set: u32) -> DataType {
    let (set, has_large) = (set & !LARGE, set & LARGE != 0);
    let is_within = |types: &[ValueType]| set & !types.iter().fold(0, |bits, ty| bits | 1 << (*ty as u32)) == 0;
    use ValueType::{Bool, F64, I64, U64};
    if is_within(&[U64]) {
        DataType::UInt64
    } else if is_within(&[I64, U64]) && !has_large {
        DataType::Int64
    } else if is_within(&[I64, U64, F64]) && set & 1 << F64 as u32 != 0 {
        DataType::Float64
    } else if is_within(&[Bool]) {
        DataType::Boolean
    } else {
        DataType::Utf8
    }
}

impl TypedField {
    /// Returns the number of bits that a row takes in the column, without the bytes of texts.
    pub(super) fn row_bits(&self) -> u64 {
        // A bit says whether there is a value.
        1 + match self.ty {
            DataType::Boolean => 1,
            DataType::Utf8 => 32,
            _ => 64,
        }
    }
}
