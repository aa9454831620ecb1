//! The values of typed events. The offsets of the values in the payload are computed once for each event type of a
//! ring.

use super::key::{NameKey, NameKind};
use super::names::{NameValues, Names};
use super::operand::Operand;
use super::seen::{Seen, number_of};
use eventring::internal::{FieldPlace, PayloadPlaces, decode_event};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::{EventModel, ExtWord, ExtWords, MALFORMED, SchemaModel, Value};
use std::collections::HashMap;

/// The longest byte string that conditions see as a whole.
const SHOWN_BYTES: usize = 32;

/// The largest number of fields and arrays of a ring whose places are known. Events of further types are decoded.
const PLACES_MAX: usize = 1 << 14;

/// The names of a ring's typed events.
pub(crate) struct TypedNames {
    model: SchemaModel,
    words: ExtWords,
    places: HashMap<u16, PayloadPlaces>,
}

/// A collector of the values of one block.
pub(super) struct TypedValues<'r> {
    ring: &'r TypedNames,
    names: &'r mut Names,
    words: Vec<Word<'r>>,
    types: Vec<OfType<'r>>,
    /// The index of the event type that came last with this low byte.
    recent: [u16; 256],
}

/// An extension word.
struct Word<'r> {
    index: usize,
    word: &'r ExtWord,
    name: usize,
    /// The other name, if it has two.
    key: Option<usize>,
    /// The value in the last event.
    last: Option<u64>,
}

/// What is known of the events of a type.
struct OfType<'r> {
    code: u16,
    places: Option<&'r PayloadPlaces>,
    fields: Vec<Field<'r>>,
    /// Empty if the arrays are lists.
    trailing: Vec<Field<'r>>,
}

/// A field, and its values in the last events.
struct Field<'r> {
    place: &'r FieldPlace,
    name: usize,
    seen: Seen<'r>,
    /// The last value of an integer.
    last: Option<u64>,
}

impl TypedNames {
    pub(crate) fn new(model: SchemaModel, words: ExtWords) -> Self {
        let mut places_left = PLACES_MAX;
        let codes = model.events().iter().map(EventModel::code);
        let places = codes.filter_map(|code| Some((code, model.payload_places(code, &mut places_left)?)));
        let places = places.collect();
        Self { model, words, places }
    }
}

impl<'r> TypedValues<'r> {
    pub(super) fn new(ring: &'r TypedNames, names: &'r mut Names) -> Self {
        let words = ring.words.iter().map(|(index, word)| {
            let (name, key) = [word.name(), &word.key()].map(|name| names.place(NameKey::field(name))).into();
            Word { index, word, name, key: Some(key).filter(|key| *key != name), last: None }
        });
        let words = words.collect();
        Self { ring, names, words, types: Vec::new(), recent: [0; 256] }
    }

    pub(super) fn add(&mut self, event: &Descriptor, payload: PayloadRead<'r>) {
        let of_type = self.type_of(event.event_type);
        for Word { index, word, name, key, last } in &mut self.words {
            let value = word.value(event.content_ext[*index]);
            if let Some(value) = value.filter(|value| last.replace(*value) != Some(*value)) {
                let mut add = |name: usize| self.names.list[name].number(value as f64);
                add(*name);
                key.iter().for_each(|key| add(*key));
            }
        }
        if let Some(payload) = payload.valid()
            && self.types[of_type].add(self.ring, self.names, payload).is_none()
            && let Value::Struct(fields) = decode_event(Some(&self.ring.model), event.event_type, payload)
        {
            add_fields(self.names, NameKey::ROOT, &fields);
        }
    }

    /// Returns the index of an event's type.
    #[inline]
    fn type_of(&mut self, code: u16) -> usize {
        let recent = &mut self.recent[usize::from(code) % 256];
        if self.types.get(usize::from(*recent)).is_some_and(|known| known.code == code) {
            return usize::from(*recent);
        }
        let index = self.types.iter().position(|known| known.code == code).unwrap_or_else(|| {
            self.types.push(OfType::new(code, self.ring, self.names));
            self.types.len() - 1
        });
        *recent = index as u16;
        index
    }
}

impl<'r> OfType<'r> {
    fn new(code: u16, ring: &'r TypedNames, names: &mut Names) -> Self {
        let name = ring.model.event(code).map_or("", EventModel::name);
        names.of(NameKey::of_kind(NameKind::Event)).add(Operand::Text(name));
        let places = ring.places.get(&code);
        let mut field = |place: &'r FieldPlace| {
            let key = place.path.iter().fold(NameKey::ROOT, |key, name| key.part(name));
            Field { place, name: names.place(key), seen: Seen::default(), last: None }
        };
        let fields = places.into_iter().flat_map(|places| &places.fields).map(&mut field).collect();
        let mut trailing: Vec<Field<'_>> =
            places.into_iter().flat_map(|places| &places.trailing).map(&mut field).collect();
        if !trailing.is_empty() && trailing.iter().all(|array| array.place.has_parts) {
            // Then nothing of them is looked at, not even whether they are whole.
            trailing.iter().for_each(|array| names.list[array.name].has_others = true);
            names.of(NameKey::field(MALFORMED)).has_others = true;
            trailing.clear();
        }
        Self { code, places, fields, trailing }
    }

    /// Adds the values of an event. Returns `None` if it must be decoded as a whole.
    #[inline]
    fn add(&mut self, ring: &'r TypedNames, names: &mut Names, payload: &'r [u8]) -> Option<()> {
        let Self { places, fields, trailing, .. } = self;
        let places = (*places)?;
        if !trailing.is_empty() || places.trailing.is_empty() {
            ring.model.trailing_bytes(places, payload, |index, bytes| trailing[index].add(ring, names, bytes))?;
        } else if payload.len() < places.fixed_bytes {
            return None;
        }
        for field in fields {
            field.add(ring, names, &payload[field.place.bytes.clone()]);
        }
        Some(())
    }
}

impl<'r> Field<'r> {
    #[inline]
    fn add(&mut self, ring: &'r TypedNames, names: &mut Names, bytes: &'r [u8]) {
        let values = &mut names.list[self.name];
        if self.place.has_parts {
            // Whoever asks for a whole struct or list gets no answer from the keys.
            values.has_others = true;
        } else if let Some(is_signed) = self.place.is_signed {
            let number = number_of(bytes);
            if self.last.replace(number) != Some(number) {
                let unused = 64 - 8 * bytes.len() as u32;
                let signed = (number << unused) as i64 >> unused;
                values.number(if is_signed { signed as f64 } else { number as f64 });
            }
        } else if !self.seen.has(0, bytes) {
            add_value(values, &ring.model.value_at(self.place, bytes));
        }
    }
}

/// Adds the fields of an event that was decoded.
fn add_fields(names: &mut Names, of: NameKey, fields: &[(&str, Value<'_>)]) {
    for (name, value) in fields {
        let name = of.part(name);
        add_value(names.of(name), value);
        if let Value::Struct(fields) = value {
            add_fields(names, name, fields);
        }
    }
}

/// Adds the value of a field of a typed event.
fn add_value(values: &mut NameValues, value: &Value<'_>) {
    match value {
        // Whoever asks for a whole struct or list gets no answer from the keys.
        Value::Struct(_) | Value::List(_) | Value::Malformed { .. } => values.has_others = true,
        Value::Bytes(bytes) if bytes.len() > SHOWN_BYTES => values.has_others = true,
        value => Operand::with_value(value, &mut |value| values.add(value)),
    }
}
