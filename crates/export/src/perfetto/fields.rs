//! The numbers of the fields that this program writes without `prost`. They are those of
//! `perfetto/trace/trace_packet.proto` and the files that it imports.

/// `Trace.packet`.
pub(super) const PACKET: u32 = 1;

/// `TracePacket.timestamp`.
pub(super) const TIMESTAMP: u32 = 8;
/// `TracePacket.trusted_packet_sequence_id`.
pub(super) const SEQUENCE_ID: u32 = 10;
/// `TracePacket.track_event`.
pub(super) const TRACK_EVENT: u32 = 11;
/// `TracePacket.interned_data`.
pub(super) const INTERNED_DATA: u32 = 12;
/// `TracePacket.compressed_packets`: a `Trace`, compressed with zlib.
pub(super) const COMPRESSED_PACKETS: u32 = 50;
/// `TracePacket.timestamp_clock_id`.
pub(super) const TIMESTAMP_CLOCK_ID: u32 = 58;

/// `TrackEvent.category_iids`.
pub(super) const CATEGORY_IIDS: u32 = 3;
/// `TrackEvent.debug_annotations`.
pub(super) const DEBUG_ANNOTATIONS: u32 = 4;
/// `TrackEvent.type`.
pub(super) const EVENT_TYPE: u32 = 9;
/// `TrackEvent.name_iid`.
pub(super) const NAME_IID: u32 = 10;
/// `TrackEvent.track_uuid`.
pub(super) const TRACK_UUID: u32 = 11;
/// `TrackEvent.categories`.
pub(super) const CATEGORIES: u32 = 22;
/// `TrackEvent.name`.
pub(super) const NAME: u32 = 23;
/// `TrackEvent.counter_value`.
pub(super) const COUNTER_VALUE: u32 = 30;
/// `TrackEvent.source_location`.
pub(super) const SOURCE_LOCATION: u32 = 33;
/// `TrackEvent.source_location_iid`.
pub(super) const SOURCE_LOCATION_IID: u32 = 34;
/// `TrackEvent.double_counter_value`.
pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
/// `TrackEvent.flow_ids`.
pub(super) const FLOW_IDS: u32 = 47;
/// `TrackEvent.terminating_flow_ids`.
pub(super) const TERMINATING_FLOW_IDS: u32 = 48;
/// `TrackEvent.correlation_id_str`.
pub(super) const CORRELATION_ID_STR: u32 = 53;
/// `TrackEvent.correlation_id_str_iid`.
pub(super) const CORRELATION_ID_STR_IID: u32 = 54;

/// `DebugAnnotation.name_iid`.
pub(super) const ANNOTATION_NAME_IID: u32 = 1;
/// `DebugAnnotation.bool_value`.
pub(super) const BOOL_VALUE: u32 = 2;
/// `DebugAnnotation.uint_value`.
pub(super) const UINT_VALUE: u32 = 3;
/// `DebugAnnotation.int_value`.
pub(super) const INT_VALUE: u32 = 4;
/// `DebugAnnotation.double_value`.
pub(super) const DOUBLE_VALUE: u32 = 5;
/// `DebugAnnotation.string_value`.
pub(super) const STRING_VALUE: u32 = 6;
/// `DebugAnnotation.name`.
pub(super) const ANNOTATION_NAME: u32 = 10;
/// `DebugAnnotation.dict_entries`.
pub(super) const DICT_ENTRIES: u32 = 11;
/// `DebugAnnotation.string_value_iid`.
pub(super) const STRING_VALUE_IID: u32 = 17;

/// `InternedData.event_categories`.
pub(super) const EVENT_CATEGORIES: u32 = 1;
/// `InternedData.event_names`.
pub(super) const EVENT_NAMES: u32 = 2;
/// `InternedData.debug_annotation_names`.
pub(super) const DEBUG_ANNOTATION_NAMES: u32 = 3;
/// `InternedData.source_locations`.
pub(super) const SOURCE_LOCATIONS: u32 = 4;
/// `InternedData.debug_annotation_string_values`.
pub(super) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
/// `InternedData.correlation_id_str`.
pub(super) const CORRELATION_IDS: u32 = 43;

/// `iid` of every interned message.
pub(super) const INTERNED_IID: u32 = 1;
/// The text of `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`.
pub(super) const INTERNED_TEXT: u32 = 2;
/// `SourceLocation.file_name`.
pub(super) const SOURCE_FILE_NAME: u32 = 2;
/// `SourceLocation.line_number`.
pub(super) const SOURCE_LINE_NUMBER: u32 = 4;
