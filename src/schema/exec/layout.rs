//! Assertions at compile time that each payload struct has the published layout: the layout of the original C
//! implementation. The derives compute the offsets, and the assertions compare them with the published offsets.

/// Asserts the size of a payload struct and the offset of each of its fields.
macro_rules! assert_layout {
    ($name:ident, $bytes:literal, { $($field:ident: $offset:literal),* $(,)? }) => {
        const _: () = {
            use $crate::schema::{EventPayload, PayloadField};
            assert!(<$name as PayloadField>::WIRE_BYTES == $bytes, "the size is not the published one");
            let mut fields = 0;
            $(
                match <$name as EventPayload>::STRUCT.field(stringify!($field)) {
                    Some(field) => assert!(field.offset == $offset, concat!("the offset of ", stringify!($field), " is not the published one")),
                    None => panic!(concat!("there is no field ", stringify!($field))),
                }
                fields += 1;
            )*
            assert!(fields == <$name as EventPayload>::FIELDS.len(), "a field has no asserted offset");
        };
    };
}

pub(super) use assert_layout;
