//! Payload structs, event types, and the payload that belongs to each event.

use super::description::describe::{FieldInfo, SchemaInfo, StructInfo};
use super::error::DecodeError;
use super::fields::field::PayloadField;
use super::schema_text::schema::Schema;
#[cfg(feature = "macros")]
pub use eventring_macros::{EventPayload, EventType};

/// The fixed struct at the beginning of an event's payload. `#[derive(EventPayload)]` implements this trait.
///
/// The derive lays the fields out as a C compiler does, in the order in which they are declared. The Rust struct
/// itself may have another layout in memory. In the ring, padding is always zero.
///
/// Attributes:
///
/// - `#[event(name = "…")]` on the struct gives its name in schema text.
/// - `#[event(redact)]` on a field marks a secret. Zeros are recorded in place of the field, and schema text says so.
/// - `#[event(alias = "…")]` on a field gives an earlier name of it, and may stand several times.
///   `#[event(default)]` or `#[event(default = VALUE)]` gives its value in rings that lack it, where `default` alone
///   means [`Default::default`]. Only readers of rings with another version of the schema use these attributes
///   ([`ReaderOptions::compatible`](crate::reader::ReaderOptions::compatible)); schema text and hash do not change.
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use eventring::schema::EventPayload;
///
/// #[derive(EventPayload, Debug, PartialEq)]
/// struct OrderPlaced {
///     side: u8,
///     price_cents: u64,
///     #[event(redact)]
///     api_key: [u8; 4],
/// }
/// let order = OrderPlaced { side: 1, price_cents: 250, api_key: *b"hush" };
/// let bytes = order.with_bytes(|bytes| bytes.to_vec());
/// assert_eq!(bytes, [1, 0, 0, 0, 0, 0, 0, 0, 250, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
///
/// let (decoded, rest) = OrderPlaced::decode(&bytes).unwrap();
/// assert_eq!(decoded, OrderPlaced { api_key: [0; 4], ..order });
/// assert!(rest.is_empty());
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event payload",
    note = "add #[derive(EventPayload)] to the struct; an event without payload takes ()"
)]
pub trait EventPayload: PayloadField {
    /// The description of the struct.
    const STRUCT: &'static StructInfo;
    /// The descriptions of its fields.
    const FIELDS: &'static [FieldInfo] = Self::STRUCT.fields;

    /// Encodes the struct into an array on the stack, and calls `f` with the array. The array has
    /// [`WIRE_BYTES`](PayloadField::WIRE_BYTES) bytes. Padding is zero.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Encodes the struct, with its padding, into the first [`WIRE_BYTES`](PayloadField::WIRE_BYTES) bytes of `out`.
    ///
    /// # Panics
    /// If `out` is shorter.
    fn encode_into(&self, out: &mut [u8]) {
        self.encode_field(out);
    }

    /// Decodes the fixed struct. Returns it, and the bytes after it, which hold the trailing arrays.
    ///
    /// # Errors
    /// Returns an error if the payload is too short, or if a bool or enum in it has an invalid value.
    fn decode(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        match payload.split_at_checked(Self::WIRE_BYTES) {
            Some((fixed, rest)) => Ok((Self::decode_field(fixed)?, rest)),
            None => Err(DecodeError::too_short(Self::STRUCT.name, payload.len(), Self::WIRE_BYTES)),
        }
    }

    /// Decodes a payload that is the fixed struct and nothing else.
    ///
    /// # Errors
    /// Returns an error if [`decode`](Self::decode) returns one, or if bytes are left over.
    fn decode_exact(payload: &[u8]) -> Result<Self, DecodeError> {
        match Self::decode(payload)? {
            (value, []) => Ok(value),
            (_, rest) => Err(DecodeError::left_over(Self::STRUCT.name, rest.len())),
        }
    }
}

/// The description of a payload of 0 bytes.
const NO_PAYLOAD: StructInfo = StructInfo { name: "()", bytes: 0, align: 1, fields: &[], description: "" };

impl PayloadField for () {
    const WIRE_BYTES: usize = 0;
    const WIRE_ALIGN: usize = 1;
    const TYPE: super::description::describe::FieldType = super::description::describe::FieldType::Struct(&NO_PAYLOAD);
    const ZERO_IS_VALID: bool = true;

    #[inline(always)]
    fn encode_field(&self, _out: &mut [u8]) {}

    #[inline(always)]
    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() { Ok(()) } else { Err(DecodeError::left_over("()", bytes.len())) }
    }
}

/// The payload of an event that has none.
impl EventPayload for () {
    const STRUCT: &'static StructInfo = &NO_PAYLOAD;

    #[inline(always)]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&[])
    }
}

/// The events of one content type. `#[derive(EventType)]`, on an enum with `#[repr(u16)]`, implements this trait.
///
/// Attributes of the enum:
///
/// - `content_type = N` is the `content_type` of ring files with these events. The numbers 1 to 3 are TEST, EXEC and
///   PERF. Programs use numbers from 256; the derive refuses smaller ones.
/// - `name = "…"` is the name of the content type. Default: the enum's name in capitals (`MY_EVENTS` for `MyEvents`).
/// - `version = N` is the author's version number. Default: 1. Raise it only if a payload gets another meaning and
///   keeps its layout, because no reader reads a ring with another number.
/// - `schema_hash = "…"` is the hash that others have published for this schema, in 64 hex digits.
/// - `recorder = PATH` is the global recorder that `record!` uses for these events.
/// - `ext(INDEX = NAME, …)` names extension words (see [`ExtWords`](super::ExtWords)), for `record!`,
///   [`ext_scope!`](crate::ext_scope), readers and exports. `INDEX = NAME: seqno` says that the word holds the seqno of
///   an event of the same ring, or 0 for no event. `INDEX = NAME: index` says that the word holds an index plus one, or
///   0 for no index. NAME is none of the keys that JSON output has already, such as `size` and `payload`.
/// - `domains` says that the high byte of an event's code is the number of its domain, from 1 to 64, and the low byte
///   its number in the domain. Events of one domain have one name for it. At least one of them gives the name.
/// - `no_span` leaves word 3 to the program. Without `no_span`, word 3 has the name `span`, and schema text says so.
///   `record!` and `recordv!` then store in it the id of the `tracing` span in which the event is recorded, if the
///   feature `tracing` records this span. A call of the macro that gives a value for `span` stores that value instead.
/// - `payloads(NAME: DERIVE, …)` makes an enum `NAME` that can hold the decoded payload of each event, and functions
///   that decode a payload to it. The enum of the events must then have the variant `RecordError = 1`.
/// - `no_views` switches off the views that the derive makes of payloads with trailing arrays.
///
/// The discriminant of a variant is the code of its event. Codes begin at 2, because code 0 means "no event", and code
/// 1 is RECORD_ERROR in every schema. You may declare RECORD_ERROR as `RecordError = 1` or leave it out. Attributes of
/// a variant:
///
/// - `payload = STRUCT` is the fixed struct of the event's payload.
/// - `trailing(NAME: TYPE * COUNT, …)` lists the arrays that follow the struct. COUNT is a field of the struct, or of a
///   struct in it (`a.b`). The last array may be without `* COUNT`; it then takes the rest of the payload. The derive
///   makes a view of the whole payload: `OrderFilledView` for `OrderFilled`, or the name that `view = NAME` gives. The
///   view's `decode` finds the arrays. The view's field `fixed` is the struct. The view has one more field for each
///   array. Views stand beside the enum. If another type there has the name already (the compiler says that
///   `OrderFilledView` is defined multiple times), give the view another name with `view = NAME`. Before NAME may stand
///   `#[event(alias = "…", default)]`, with the meaning that it has for fields; an array that a ring lacks is empty.
/// - `alias = "…"` is an earlier name of the event, as schema text has it (`ORDER_FILLED`).
/// - `domain = "…"` is the name of the domain to which the event belongs. A program can switch domains on and off
///   ([`RecorderBuilder::domains`](crate::recorder::RecorderBuilder::domains)). If the enum does not say `domains`,
///   either all events or none have this attribute, and domains are numbered in the order of the codes. A schema has at
///   most 64 domains.
/// - `carries(NAME, …)` lists the named extension words that the event takes from scopes
///   ([`ext_scope!`](crate::ext_scope)). Without this attribute, the event takes all named words.
/// - `name = "…"` is the event's name in schema text.
///
/// The first paragraph of each documentation comment becomes a description in the schema text. The hash does not
/// depend on descriptions.
///
/// ```
/// # #[cfg(feature = "macros")] {
/// use eventring::schema::{EventPayload, EventType, Utf8};
///
/// #[derive(EventPayload)]
/// struct Order {
///     id: u64,
///     fill_count: u32,
/// }
///
/// #[derive(EventType, Clone, Copy, Debug, PartialEq)]
/// #[event(content_type = 300, name = "SHOP")]
/// #[repr(u16)]
/// enum Shop {
///     #[event(payload = Order, trailing(fills: u64 * fill_count, note: Utf8))]
///     OrderFilled = 2,
///     DayEnded = 3,
/// }
///
/// assert_eq!(Shop::OrderFilled.name(), "ORDER_FILLED");
/// assert_eq!(Shop::from_code(3), Some(Shop::DayEnded));
/// let order_filled = "event 2 ORDER_FILLED Order\ntrailing fills u64 fill_count\ntrailing note utf8 *\n";
/// assert!(Shop::schema().text().contains(order_filled));
///
/// let order = Order { id: 17, fill_count: 2 };
/// let fills = eventring::schema::encode_array(&[5u64, 6]);
/// let payload = [order.with_bytes(<[u8]>::to_vec), fills, b"in a hurry".to_vec()].concat();
/// let view = OrderFilledView::decode(&payload)?;
/// assert_eq!((view.fixed.id, view.fills.to_vec()?, &*view.note.to_text()), (17, vec![5, 6], "in a hurry"));
/// # }
/// # Ok::<(), eventring::schema::DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event type",
    note = "add #[derive(EventType, Clone, Copy)], #[repr(u16)] and #[event(content_type = N)] to the enum"
)]
pub trait EventType: Copy + Sized + 'static {
    /// The description of the schema.
    const INFO: &'static SchemaInfo;
    /// The `content_type` of ring files with these events.
    const CONTENT_TYPE: u16 = Self::INFO.content_type;
    /// The name of the content type (`SHOP`).
    const CONTENT_NAME: &'static str = Self::INFO.name;

    /// Returns the `event_type` of this event's descriptors.
    fn code(self) -> u16;

    /// Returns the event of that code, if the enum has it.
    fn from_code(code: u16) -> Option<Self>;

    /// Returns the event's name (`ORDER_FILLED`).
    fn name(self) -> &'static str;

    /// Returns the extension words that the event takes from the thread's scopes, as bits: bit *n* is set if the
    /// event takes word *n*. The word `span` is not among them.
    #[doc(hidden)]
    #[inline(always)]
    fn carried_words(self) -> u8 {
        Self::INFO.ext_words.own_bits()
    }

    /// Returns the schema, with its text and hash. The first call makes the schema.
    fn schema() -> &'static Schema;

    /// Returns the `schema_hash` of ring files with these events.
    fn schema_hash() -> [u8; 32] {
        Self::schema().hash()
    }
}

/// A type that is the fixed struct in the payload of event `CODE` of the enum `E`. The type is `()` for an event
/// without a fixed struct.
///
/// `#[derive(EventType)]` implements this trait. It lets `record!` refuse the payload of another event at compile
/// time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the payload of this event",
    label = "the payload of another event, or of none",
    note = "the enum says which payload an event has: #[event(payload = …)] on the variant, none means ()"
)]
pub trait PayloadOf<E: EventType, const CODE: u16>: EventPayload {
    /// The number of trailing arrays that follow the fixed struct.
    const TRAILING_ARRAYS: usize;
}
