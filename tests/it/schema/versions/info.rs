//! The descriptions that derives would make of random schemas.

use super::sketch::{Event, Field, Names, Sketch, Type, offsets};
use eventring::schema::{
    EnumInfo, EventInfo, Evolution, ExtWords, FieldInfo, FieldType, Scalar, SchemaInfo, StructInfo, TrailingCount,
    TrailingInfo,
};

/// Makes the description that a derive would make. It lives as long as the program, as a derive's does.
pub fn info(sketch: &Sketch) -> &'static SchemaInfo {
    let mut events: Vec<EventInfo> = sketch.events.iter().map(event_info).collect();
    events.sort_by_key(|event| event.code);
    leak(SchemaInfo {
        content_type: 300,
        name: "SHOP",
        version: sketch.version,
        events: events.leak(),
        published_hash: None,
        ext_words: ExtWords::NONE,
        description: "",
    })
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn evolution(names: &Names, default: Option<fn(&mut [u8])>) -> Evolution {
    Evolution { aliases: names.aliases.clone().leak(), default }
}

fn event_info(event: &Event) -> EventInfo {
    let trailing = event.arrays.iter().map(|array| TrailingInfo {
        name: array.names.name,
        element: type_info(&array.element),
        count: array.count.map_or(TrailingCount::Rest, TrailingCount::Field),
        evolution: evolution(&array.names, array.has_default.then_some(|_: &mut [u8]| ())),
    });
    EventInfo {
        code: event.code,
        name: event.names.name,
        domain: None,
        payload: Some(struct_info(&event.fields)),
        trailing: trailing.collect::<Vec<_>>().leak(),
        evolution: evolution(&event.names, None),
        description: "",
    }
}

fn struct_info(fields: &[Field]) -> &'static StructInfo {
    let (offsets, bytes, align) = offsets(fields);
    let fields = fields.iter().zip(offsets).map(|(field, offset)| FieldInfo {
        name: field.names.name,
        ty: type_info(&field.ty),
        offset,
        bytes: field.ty.layout().0,
        redacted: field.redacted,
        evolution: evolution(&field.names, field.default.map(default_of)),
        description: "",
    });
    leak(StructInfo { name: "S", bytes, align, fields: fields.collect::<Vec<_>>().leak(), description: "" })
}

/// Returns the function that encodes [`Field::default`].
fn default_of(byte: u8) -> fn(&mut [u8]) {
    match byte {
        0 => |out| out.fill(0),
        _ => |out| out.fill(1),
    }
}

fn type_info(ty: &Type) -> FieldType {
    match ty {
        Type::Uint(1) => FieldType::Scalar(Scalar::U8),
        Type::Uint(2) => FieldType::Scalar(Scalar::U16),
        Type::Uint(4) => FieldType::Scalar(Scalar::U32),
        Type::Uint(_) => FieldType::Scalar(Scalar::U64),
        Type::Bytes(len) => FieldType::Array { element: leak(FieldType::Scalar(Scalar::U8)), len: *len },
        Type::Array(element, len) => FieldType::Array { element: leak(type_info(element)), len: *len },
        Type::Struct(fields) => FieldType::Struct(struct_info(fields)),
        Type::Enum(values) => {
            let evolutions: Vec<Evolution> = values.iter().map(|(_, names)| evolution(names, None)).collect();
            let values: Vec<_> = values.iter().map(|(number, names)| (i128::from(*number), names.name)).collect();
            let (values, evolution) = (values.leak(), evolutions.leak());
            FieldType::Enum(leak(EnumInfo { name: "E", repr: Scalar::U8, values, evolution, description: "" }))
        }
    }
}
