//! Random pairs of schemas against a simple model: whether a ring of one can be read with the other, and what is read.

use super::edits::Random;
use super::info::info;
use super::model::{Model, RULES, Rule};
use super::sketch::{self, Event, Sketch, Type, Val};
use eventring::internal::Resolution;
use eventring::schema::{SchemaInfo, SchemaModel, Value};

/// A schema, as a ring has it and as a reader has it.
struct Sides {
    sketch: Sketch,
    /// The schema of a ring, and the decoder of what a reader gets.
    model: SchemaModel,
    info: &'static SchemaInfo,
}

impl Sides {
    fn new(sketch: Sketch) -> Self {
        let text = sketch::text(&sketch);
        let model = SchemaModel::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let info = info(&sketch);
        Self { sketch, model, info }
    }
}

/// Counts of pairs.
#[derive(Debug, Default)]
struct Counts {
    pairs: u32,
    compatible: u32,
    changed_payloads: u32,
}

/// Compares the library with the model for this number of pairs. Returns the first disagreement.
fn compare(pairs: u32, seed: u64, model: &Model) -> Result<Counts, String> {
    let mut counts = Counts::default();
    let mut turn = seed;
    while counts.pairs < pairs {
        let mut random = Random::new(turn);
        turn += 1;
        let old = Sides::new(random.sketch());
        for _ in 0..8 {
            let new = Sides::new(random.edited(&old.sketch));
            for (ring, reader) in [(&old, &new), (&new, &old)] {
                counts.pairs += 1;
                compare_pair(ring, reader, model, &mut random, &mut counts).map_err(|problem| {
                    let texts = format!("ring:\n{}\nreader:\n{:#?}", sketch::text(&ring.sketch), reader.sketch);
                    format!("seed {}: {problem}\n{texts}", turn - 1)
                })?;
            }
        }
    }
    Ok(counts)
}

fn compare_pair(
    ring: &Sides,
    reader: &Sides,
    model: &Model,
    random: &mut Random,
    counts: &mut Counts,
) -> Result<(), String> {
    let resolution = Resolution::new(&ring.model, reader.info);
    let expected = model.is_compatible(&ring.sketch, &reader.sketch);
    if resolution.is_compatible() != expected {
        return Err(format!("the library says compatible: {}, the model {expected}", resolution.is_compatible()));
    }
    if !expected {
        return Ok(());
    }
    counts.compatible += 1;
    for event in &ring.sketch.events {
        let values = values_of(event, random);
        let recorded = payload_of(event, &values);
        let mut payload = recorded.clone();
        if !resolution.resolve(event.code, &mut payload) {
            return Err(format!("event {}: its payload is refused", event.code));
        }
        counts.changed_payloads += u32::from(payload != recorded);
        let Some(known) = reader.sketch.events.iter().find(|known| known.code == event.code) else {
            if payload != recorded {
                return Err(format!("event {}, which is not known, has another payload", event.code));
            }
            continue;
        };
        let read = fields_of(&reader.model.decode(event.code, &payload));
        let expected = model.read(event, known, &values);
        if read != expected {
            return Err(format!("event {}: read {read:?}, the model says {expected:?}", event.code));
        }
        // A payload that was cut or damaged is refused, or gives some payload: it never makes a reader panic.
        let cut = random.below(recorded.len() + 1);
        let _ = resolution.resolve(event.code, &mut recorded[..cut].to_vec());
        let mut damaged = recorded;
        if let Some(byte) = damaged.get_mut(cut) {
            *byte ^= 1 << random.below(8);
            let _ = resolution.resolve(event.code, &mut damaged);
        }
    }
    Ok(())
}

/// Makes values of the fields and arrays of an event. Fields that count arrays get small numbers.
fn values_of(event: &Event, random: &mut Random) -> Vec<Val> {
    let mut values: Vec<Val> = event.fields.iter().map(|field| random.field_value(field)).collect();
    for (field, value) in event.fields.iter().zip(&mut values) {
        if event.arrays.iter().any(|array| array.count == Some(field.names.name)) {
            *value = Val::Number(random.below(4) as u64);
        }
    }
    for array in &event.arrays {
        let counted = event.fields.iter().zip(&values).find(|(field, _)| Some(field.names.name) == array.count);
        let len = match counted {
            Some((_, Val::Number(count))) => *count as usize,
            _ => random.below(4),
        };
        values.push(match array.element {
            Type::Uint(1) => random.value(&Type::Bytes(len)),
            _ => random.value(&Type::Array(Box::new(array.element.clone()), len)),
        });
    }
    values
}

fn payload_of(event: &Event, values: &[Val]) -> Vec<u8> {
    let (fields, arrays) = values.split_at(event.fields.len());
    let mut payload = vec![0; sketch::offsets(&event.fields).1];
    sketch::encode_fields(&event.fields, fields, &mut payload);
    for (array, value) in event.arrays.iter().zip(arrays) {
        match value {
            Val::Bytes(bytes) => payload.extend(bytes),
            Val::List(elements) => {
                for element in elements {
                    let start = payload.len();
                    payload.resize(start + array.element.layout().0, 0);
                    sketch::encode(&array.element, element, &mut payload[start..]);
                }
            }
            _ => unreachable!("an array is bytes or a list"),
        }
    }
    payload
}

/// Returns the fields of a decoded payload, as the model has them.
fn fields_of(value: &Value<'_>) -> Vec<(&'static str, Val)> {
    match val_of(value) {
        Val::Struct(fields) => fields,
        other => panic!("a payload is a struct, not {other:?}"),
    }
}

fn val_of(value: &Value<'_>) -> Val {
    match value {
        Value::Uint(number) => Val::Number(*number),
        Value::Enum { number, .. } => Val::Number(*number as u64),
        Value::Bytes(bytes) => Val::Bytes(bytes.to_vec()),
        Value::List(elements) => Val::List(elements.iter().map(val_of).collect()),
        Value::Redacted => Val::Redacted,
        Value::Struct(fields) => {
            let named = |name: &str| -> &'static str { Box::leak(name.to_owned().into_boxed_str()) };
            Val::Struct(fields.iter().map(|(name, value)| (named(name), val_of(value))).collect())
        }
        other => panic!("no schema here has a value such as {other:?}"),
    }
}

#[test]
fn random_pairs_of_schemas_are_read_as_a_simple_model_says() {
    let of_thread = |thread: u64| compare(25_000, thread << 32, &Model { without: None });
    let counts: Vec<Counts> = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|thread| scope.spawn(move || of_thread(thread)));
        threads.map(|thread| thread.join().unwrap().unwrap_or_else(|problem| panic!("{problem}"))).into()
    });
    for Counts { pairs, compatible, changed_payloads, .. } in &counts {
        // Both answers are frequent, and so are payloads that change.
        assert!(*pairs >= 25_000 && *compatible > 5_000 && pairs - compatible > 5_000, "{counts:?}");
        assert!(*changed_payloads > 5_000, "{counts:?}");
    }
}

/// The control: if one rule is wrong, the test finds it.
#[test]
fn random_pairs_find_each_rule_that_is_left_out() {
    let unnoticed: Vec<Rule> =
        RULES.into_iter().filter(|rule| compare(5_000, 1 << 40, &Model { without: Some(*rule) }).is_ok()).collect();
    assert_eq!(unnoticed, []);
}
