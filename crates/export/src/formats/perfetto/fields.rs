//! The numbers of the fields that this program writes without `prost`, from `perfetto/trace/trace_packet.proto` and its
//! imports. A constant has the name of its field, unless its comment gives another name.

// Fields of `Trace`.
pub(super) const PACKET: u32 = 1;

// Fields of `TracePacket`.
pub(super) const TIMESTAMP: u32 = 8;
/// `trusted_packet_sequence_id`
pub(super) const SEQUENCE_ID: u32 = 10;
pub(super) const TRACK_EVENT: u32 = 11;
pub(super) const INTERNED_DATA: u32 = 12;
/// A `Trace`, compressed with zlib.
pub(super) const COMPRESSED_PACKETS: u32 = 50;
pub(super) const TIMESTAMP_CLOCK_ID: u32 = 58;

// Fields of `TrackEvent`.
pub(super) const CATEGORY_IIDS: u32 = 3;
pub(super) const DEBUG_ANNOTATIONS: u32 = 4;
/// `type`
pub(super) const EVENT_TYPE: u32 = 9;
pub(super) const NAME_IID: u32 = 10;
pub(super) const TRACK_UUID: u32 = 11;
pub(super) const CATEGORIES: u32 = 22;
pub(super) const NAME: u32 = 23;
pub(super) const COUNTER_VALUE: u32 = 30;
pub(super) const SOURCE_LOCATION: u32 = 33;
pub(super) const SOURCE_LOCATION_IID: u32 = 34;
pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
pub(super) const FLOW_IDS: u32 = 47;
pub(super) const TERMINATING_FLOW_IDS: u32 = 48;
pub(super) const CORRELATION_ID_STR: u32 = 53;
pub(super) const CORRELATION_ID_STR_IID: u32 = 54;

// Fields of `DebugAnnotation`.
/// `name_iid`
pub(super) const ANNOTATION_NAME_IID: u32 = 1;
pub(super) const BOOL_VALUE: u32 = 2;
pub(super) const UINT_VALUE: u32 = 3;
pub(super) const INT_VALUE: u32 = 4;
pub(super) const DOUBLE_VALUE: u32 = 5;
pub(super) const STRING_VALUE: u32 = 6;
/// `name`
pub(super) const ANNOTATION_NAME: u32 = 10;
pub(super) const DICT_ENTRIES: u32 = 11;
pub(super) const STRING_VALUE_IID: u32 = 17;

// Fields of `InternedData`.
pub(super) const EVENT_CATEGORIES: u32 = 1;
pub(super) const EVENT_NAMES: u32 = 2;
pub(super) const DEBUG_ANNOTATION_NAMES: u32 = 3;
pub(super) const SOURCE_LOCATIONS: u32 = 4;
pub(super) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
/// `correlation_id_str`
pub(super) const CORRELATION_IDS: u32 = 43;

/// `iid` of every interned message.
pub(super) const INTERNED_IID: u32 = 1;
/// The text of `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`.
pub(super) const INTERNED_TEXT: u32 = 2;

// Fields of `SourceLocation`.
/// `file_name`
pub(super) const SOURCE_FILE_NAME: u32 = 2;
/// `line_number`
pub(super) const SOURCE_LINE_NUMBER: u32 = 4;
