//! Payloads of every event of the EXEC schema. If the bytes of a payload fit the struct and the arrays, the payload
//! can be decoded by its Rust type and by schema text. If not, decoding fails.

use crate::fixtures::*;
use eventring::schema::exec::ExecPayload;
use eventring::schema::{
    EventInfo, EventPayload, EventType, FieldType, PayloadField, RecordError, Scalar, StructInfo, TrailingCount, Value,
};
use proptest::prelude::*;

/// Turns random bytes into a value of `ty`. Bools become 0 or 1, enums get one of their numbers, and padding becomes
/// zero.
fn make_valid(ty: &FieldType, bytes: &mut [u8]) {
    match ty {
        FieldType::Scalar(Scalar::Bool) => bytes[0] &= 1,
        FieldType::Scalar(_) => {}
        FieldType::Enum(info) => {
            let (number, _) = info.values[usize::from(bytes[0]) % info.values.len()];
            bytes.copy_from_slice(&number.to_le_bytes()[..bytes.len()]);
        }
        FieldType::Array { element, .. } => {
            bytes.chunks_mut(element.bytes()).for_each(|bytes| make_valid(element, bytes));
        }
        FieldType::Struct(info) => {
            let mut is_padding = vec![true; bytes.len()];
            for field in info.fields {
                let range = field.offset..field.offset + field.bytes;
                is_padding[range.clone()].fill(false);
                make_valid(&field.ty, &mut bytes[range]);
            }
            bytes.iter_mut().zip(is_padding).filter(|(_, is_padding)| *is_padding).for_each(|(byte, _)| *byte = 0);
        }
    }
}

/// Returns the byte range of a field in the fixed struct. Dots in `path` lead to fields of inner structs.
fn field_range(info: &StructInfo, path: &str) -> std::ops::Range<usize> {
    match path.split_once('.') {
        None => {
            let field = info.field(path).unwrap();
            field.offset..field.offset + field.bytes
        }
        Some((first, rest)) => {
            let field = info.field(first).unwrap();
            let FieldType::Struct(inner) = field.ty else { panic!("{path}") };
            let range = field_range(inner, rest);
            field.offset + range.start..field.offset + range.end
        }
    }
}

/// Makes a valid payload of the event from random bytes. Each number in `counts` is the length of one of its arrays.
fn payload(event: &EventInfo, mut random: Vec<u8>, counts: &[usize]) -> Vec<u8> {
    let Some(info) = event.payload else { return Vec::new() };
    let trailing = random.split_off(info.bytes);
    make_valid(&FieldType::Struct(info), &mut random);
    let mut payload = random;
    let mut trailing = trailing.into_iter();
    for (array, &count) in event.trailing.iter().zip(counts) {
        let TrailingCount::Field(path) = array.count else { panic!("{}", array.name) };
        let range = field_range(info, path);
        let bytes = range.len();
        payload[range].copy_from_slice(&count.to_le_bytes()[..bytes]);
        payload.extend(trailing.by_ref().take(count * array.element.bytes()));
    }
    payload
}

/// Encodes the fixed struct and the arrays again.
fn encode(payload: &ExecPayload<'_>) -> Vec<u8> {
    let fixed = |value: &dyn Fn(&mut [u8]), bytes: usize| {
        let mut out = vec![0xee; bytes];
        value(&mut out);
        out
    };
    macro_rules! encode {
        ($value:expr) => {
            fixed(&|out| $value.encode_into(out), wire_bytes(&$value))
        };
    }
    match payload {
        ExecPayload::RecordError(view) => {
            let error: RecordError = view.error.unwrap();
            [encode!(error), view.truncated_payload.to_vec()].concat()
        }
        ExecPayload::BlockStart(value) => encode!(*value),
        ExecPayload::BlockReject(value) => encode!(*value),
        ExecPayload::BlockEnd(value) => encode!(*value),
        ExecPayload::BlockQc(value) => encode!(*value),
        ExecPayload::BlockFinalized(value) => encode!(*value),
        ExecPayload::BlockVerified(value) => encode!(*value),
        ExecPayload::TxnHeaderStart(view) => {
            [encode!(view.fixed), view.data.as_bytes().to_vec(), view.blob_hashes.as_bytes().to_vec()].concat()
        }
        ExecPayload::TxnAccessListEntry(view) => [encode!(view.fixed), view.storage_keys.as_bytes().to_vec()].concat(),
        ExecPayload::TxnAuthListEntry(value) => encode!(*value),
        ExecPayload::TxnReject(value) => encode!(*value),
        ExecPayload::TxnEvmOutput(value) => encode!(*value),
        ExecPayload::TxnLog(view) => {
            [encode!(view.fixed), view.topics.as_bytes().to_vec(), view.data.as_bytes().to_vec()].concat()
        }
        ExecPayload::TxnCallFrame(view) => {
            [encode!(view.fixed), view.input.as_bytes().to_vec(), view.return_value.as_bytes().to_vec()].concat()
        }
        ExecPayload::AccountAccessListHeader(value) => encode!(*value),
        ExecPayload::AccountAccess(value) => encode!(*value),
        ExecPayload::StorageAccess(value) => encode!(*value),
        ExecPayload::EvmError(value) => encode!(*value),
        ExecPayload::BlockPerfEvmEnter
        | ExecPayload::BlockPerfEvmExit
        | ExecPayload::TxnHeaderEnd
        | ExecPayload::TxnPerfEvmEnter
        | ExecPayload::TxnPerfEvmExit
        | ExecPayload::TxnEnd => Vec::new(),
    }
}

fn wire_bytes<T: PayloadField>(_: &T) -> usize {
    T::WIRE_BYTES
}

/// Returns true if an enum in the value has a number without a name. Decoding by type refuses this number; decoding
/// by schema text shows it. The two numbers of a RECORD_ERROR have names only in the model.
fn has_unknown_enum(value: &Value<'_>) -> bool {
    match value {
        Value::Struct(fields) if fields.first().is_some_and(|(name, _)| &**name == "error_type") => false,
        Value::Enum { name, .. } => name.is_none(),
        Value::List(elements) => elements.iter().any(has_unknown_enum),
        Value::Struct(fields) => fields.iter().any(|(_, value)| has_unknown_enum(value)),
        _ => false,
    }
}

#[test]
fn the_schema_has_the_published_events() {
    let events = ExecEvent::INFO.events;
    assert_eq!(events.iter().map(|event| event.code).collect::<Vec<_>>(), (1..=24).collect::<Vec<_>>());
    let published = [16, 528, 4, 0, 0, 360, 56, 40, 8, 352, 28, 168, 0, 4, 0, 0, 24, 32, 128, 0, 8, 152, 124, 16];
    for (event, bytes) in events.iter().zip(published) {
        assert_eq!(event.payload.map_or(0, |info| info.bytes), bytes, "{}", event.name);
        let typed = ExecEvent::from_code(event.code).unwrap();
        assert_eq!((typed.code(), typed.name()), (event.code, event.name));
    }
    assert!(ExecEvent::from_code(0).is_none() && ExecEvent::from_code(25).is_none());
}

proptest! {
    #[test]
    fn what_an_event_allows_decodes_and_encodes_to_the_same_bytes(
        random in prop::collection::vec(any::<u8>(), 1000),
        counts in [0..6usize, 0..6usize],
    ) {
        let model = ExecEvent::schema().model().unwrap();
        for event in ExecEvent::INFO.events {
            let payload = payload(event, random.clone(), &counts);
            let typed = ExecPayload::decode(event.code, &payload).unwrap();
            prop_assert_eq!(typed.event().code(), event.code);
            prop_assert_eq!(encode(&typed), &payload[..]);
            let value = model.decode(event.code, &payload);
            prop_assert!(!value.has_malformed() && !has_unknown_enum(&value), "{}", value);
            // The payload has one byte more, then one byte less.
            let longer = [&payload[..], &[0]].concat();
            prop_assert!(ExecPayload::decode(event.code, &longer).is_err());
            prop_assert!(model.decode(event.code, &longer).has_malformed());
            if let Some((_, shorter)) = payload.split_last() {
                prop_assert!(ExecPayload::decode(event.code, shorter).is_err());
                prop_assert!(model.decode(event.code, shorter).has_malformed());
            }
        }
    }

    #[test]
    fn typed_decoding_and_decoding_by_text_refuse_the_same_payloads(
        random in prop::collection::vec(any::<u8>(), 1000),
        counts in [0..3usize, 0..3usize],
        damage in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4),
    ) {
        let model = ExecEvent::schema().model().unwrap();
        for event in ExecEvent::INFO.events {
            let mut payload = payload(event, random.clone(), &counts);
            for (place, byte) in damage.iter().filter(|_| !payload.is_empty()).collect::<Vec<_>>() {
                let place = place.index(payload.len());
                payload[place] = *byte;
            }
            let value = model.decode(event.code, &payload);
            let is_refused = value.has_malformed() || has_unknown_enum(&value);
            prop_assert_eq!(ExecPayload::decode(event.code, &payload).is_err(), is_refused, "{}", value);
        }
    }
}
