//! Payload structs, event types, and the payload that belongs to each event.

use super::describe::{FieldInfo, SchemaInfo, StructInfo};
use super::error::DecodeError;
use super::field::PayloadField;
use super::text::Schema;

/// The fixed struct at the beginning of an event's payload. `#[derive(EventPayload)]` implements it.
///
/// The derive lays the fields out as a C compiler does, in the order in which they are declared. The Rust struct itself
/// may have another layout in memory. Padding is always zero in the ring.
///
/// Attributes:
///
/// - `#[event(name = "…")]` on the struct is its name in schema text.
/// - `#[event(redact)]` on a field marks a secret: zeros are recorded in its place, and schema text says so.
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

    /// Encodes into an array on the stack and calls `f` with it. The array has
    /// [`WIRE_BYTES`](PayloadField::WIRE_BYTES) bytes, and padding is zero.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Encodes into the first [`WIRE_BYTES`](PayloadField::WIRE_BYTES) bytes of `out`, padding included.
    ///
    /// # Panics
    /// If `out` is shorter.
    fn encode_into(&self, out: &mut [u8]) {
        self.encode_field(out);
    }

    /// Decodes the fixed struct. Returns the struct and the bytes that follow it, which hold the trailing arrays.
    ///
    /// # Errors
    /// The payload is too short, or a bool or enum in it has an invalid value.
    fn decode(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        match payload.split_at_checked(Self::WIRE_BYTES) {
            Some((fixed, rest)) => Ok((Self::decode_field(fixed)?, rest)),
            None => Err(DecodeError::too_short(Self::STRUCT.name, payload.len(), Self::WIRE_BYTES)),
        }
    }

    /// Decodes a payload that is the fixed struct and nothing else.
    ///
    /// # Errors
    /// As [`decode`](Self::decode); or bytes are left over.
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
    const TYPE: super::describe::FieldType = super::describe::FieldType::Struct(&NO_PAYLOAD);
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

/// The events of one content type. `#[derive(EventType)]` on a `#[repr(u16)]` enum implements it.
///
/// Attributes of the enum:
///
/// - `content_type = N` is the `content_type` of its ring files. 1 to 3 are TEST, EXEC and PERF; programs use numbers
///   from 256.
/// - `name = "…"` is the name of the content type; without it, the enum's own name (`MyEvents` is `MY_EVENTS`).
/// - `version = N` is the author's version number. Default: 1.
/// - `schema_hash = "…"` is the hash that others have published for this schema, in 64 hex digits.
/// - `recorder = PATH` is the global recorder that `record!` uses for these events.
/// - `ext(INDEX = NAME, …)` names extension words (see [`ExtWords`](super::ExtWords)), for `record!`,
///   [`ext_scope!`](crate::ext_scope), readers and exports. `INDEX = NAME: seqno` says that the word holds the seqno of
///   an event of the same ring. `INDEX = NAME: index` says that the word holds an index plus one. In both cases the
///   word is 0 if it names nothing.
/// - `no_span` keeps word 3 for the program's own use. Without it, an event that `record!` or `recordv!` records inside
///   a `tracing` span carries the span's id in this word, and the schema text says so. The span must be one that the
///   feature `tracing` records. If a call of the macro names the word `span`, the value in the call
///   is recorded.
/// - `payloads(NAME: DERIVE, …)` makes an enum of that name that holds the decoded payload of any event, with functions
///   that decode it; it needs the variant `RecordError = 1`.
/// - `no_views` makes no views of payloads with trailing arrays.
///
/// Each variant has its code as discriminant, from 2. Code 0 means "no event". Code 1 is RECORD_ERROR in every schema:
/// declare it as `RecordError = 1` or leave it out. Attributes of a variant:
///
/// - `payload = STRUCT` is its fixed struct.
/// - `trailing(NAME: TYPE * COUNT, …)` are the arrays that follow the struct. COUNT is a field of the struct (or of a
///   struct in it, `a.b`). A last array without `* COUNT` takes the rest of the payload. The derive makes a view of the
///   whole payload: `OrderFilledView` for `OrderFilled`, or the name that `view = NAME` gives. Its `decode` finds the
///   arrays; its fields are `fixed` and the arrays.
/// - `carries(NAME, …)` lists the named extension words that the event takes from scopes
///   ([`ext_scope!`](crate::ext_scope)). Without this attribute, the event takes all of them.
/// - `name = "…"` is its name in schema text.
///
/// The first paragraphs of documentation comments become descriptions in the schema text. They do not enter the hash.
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

    /// Returns the extension words, besides the span, that the event takes from the scopes of the thread. Bit *n*
    /// stands for word *n*.
    #[doc(hidden)]
    #[inline(always)]
    fn carried_words(self) -> u8 {
        Self::INFO.ext_words.own_bits()
    }

    /// Returns the schema: its text and hash. The first call makes it.
    fn schema() -> &'static Schema;

    /// Returns the `schema_hash` of ring files with these events.
    fn schema_hash() -> [u8; 32] {
        Self::schema().hash()
    }
}

/// A type that is the fixed struct of the payload of event `CODE` of `E`. For an event without payload, the type is
/// `()`.
///
/// `#[derive(EventType)]` implements it. With it, `record!` refuses a payload of another event at compile time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the payload of this event",
    label = "the payload of another event, or of none",
    note = "the enum says which payload an event has: #[event(payload = …)] on the variant, none means ()"
)]
pub trait PayloadOf<E: EventType, const CODE: u16>: EventPayload {
    /// The number of trailing arrays that follow the fixed struct.
    const TRAILING_ARRAYS: usize;
}
