//! The metadata of a trace: a text in the language TSDL that describes the trace, its streams and its events.

use eventring_capture::RingRole;
use eventring_capture::recording::CaptureRecording;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write};

/// The stand-in for the character NUL, with which a text of the format ends. (U+2400, the symbol for NUL.)
const NUL_SYMBOL: char = '\u{2400}';

/// The types of fields. The numbers of `level_t` are those of
/// [`CallSiteLevel`](eventring::schema::perf::CallSiteLevel).
const TYPES: &str = "\
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = true; } := int8_t;
typealias integer { size = 16; align = 8; signed = true; } := int16_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := float32_t;
typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := float64_t;
typealias enum : uint8_t {
    \"-\" = 0, \"ERROR\" = 1, \"WARN\" = 2, \"INFO\" = 3, \"DEBUG\" = 4, \"TRACE\" = 5
} := level_t;
";

const CLOCK: &str = "\
clock {
    name = epoch;
    description = \"Nanoseconds since the epoch\";
    freq = 1000000000;
    offset_s = 0;
    offset = 0;
    absolute = true;
};
typealias integer { size = 64; align = 8; signed = false; map = clock.epoch.value; } := epoch_nanos_t;
";

/// The fields of a packet's context that [`Stream`](super::stream::Stream) writes.
const PACKET_CONTEXT: &str = "epoch_nanos_t timestamp_begin; epoch_nanos_t timestamp_end; uint64_t content_size; \
                              uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; \
                              uint32_t _process; string _ring;";

/// The metadata that is being written.
pub(super) struct Metadata {
    file: Box<dyn Write + Send>,
}

impl Metadata {
    /// Writes the description of the trace itself.
    pub(super) fn begin(
        mut file: Box<dyn Write + Send>,
        recording: &CaptureRecording<'_>,
        uuid: [u8; 16],
    ) -> io::Result<Self> {
        let uuid = uuid_text(uuid);
        let header = "uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;";
        write!(
            file,
            "/* CTF 1.8 */\n{TYPES}trace {{\n    major = 1;\n    minor = 8;\n    uuid = \"{uuid}\";\n    \
             byte_order = le;\n    packet.header := struct {{ {header} }};\n}};\n{}{CLOCK}",
            environment(recording)
        )?;
        Ok(Self { file })
    }

    /// Describes a class of streams. `context` are the fields that each of its events has before its own fields.
    pub(super) fn stream_class(&mut self, id: u32, context: &str) -> io::Result<()> {
        writeln!(
            self.file,
            "stream {{\n    id = {id};\n    packet.context := struct {{ {PACKET_CONTEXT} }};\n    \
             event.header := struct {{ epoch_nanos_t timestamp; uint32_t id; }};\n    \
             event.context := struct {{ {context}}};\n}};"
        )
    }

    /// Describes a class of events. `fields` are their own fields.
    pub(super) fn event_class(&mut self, stream_class: u32, id: u32, name: &str, fields: &str) -> io::Result<()> {
        let name = quoted(name);
        writeln!(
            self.file,
            "event {{ stream_id = {stream_class}; id = {id}; name = {name}; fields := struct {{ {fields}}}; }};"
        )
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the environment of the trace: the program that wrote the trace, and the origin of each ring.
fn environment(recording: &CaptureRecording<'_>) -> String {
    let mut text = String::from("env {\n");
    let mut put = |name: &str, value: &dyn std::fmt::Display| _ = writeln!(text, "    {name} = {value};");
    put("tracer_name", &quoted("eventring"));
    put("tracer_major", &env!("CARGO_PKG_VERSION_MAJOR"));
    put("tracer_minor", &env!("CARGO_PKG_VERSION_MINOR"));
    put("tracer_patch", &env!("CARGO_PKG_VERSION_PATCH"));
    put("capture_started_ns", &quoted(&recording.capture.started_epoch_nanos().to_string()));
    for (index, ring) in recording.capture.rings().iter().enumerate() {
        put(&format!("ring_{index}_name"), &quoted(&ring.name));
        put(&format!("ring_{index}_content"), &quoted(&ring.content_name));
        put(&format!("ring_{index}_process"), &ring.process);
        if ring.pid != 0 {
            put(&format!("ring_{index}_pid"), &ring.pid);
        }
        if !ring.program_name.is_empty() {
            put(&format!("ring_{index}_program"), &quoted(&ring.program_name));
        }
        if let RingRole::Shard { shard, .. } = ring.role {
            put(&format!("ring_{index}_shard"), &shard);
        }
    }
    text.push_str("};\n");
    text
}

/// Returns a text as a literal of the metadata, with its quotation marks.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\0' => literal.push(NUL_SYMBOL),
            c if c.is_ascii_control() => _ = write!(literal, "\\{:03o}", u32::from(c)),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// Appends a text to an event.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let mut parts = text.split('\0');
    out.extend(parts.next().unwrap_or_default().as_bytes());
    for part in parts {
        out.extend(NUL_SYMBOL.encode_utf8(&mut [0; 4]).as_bytes());
        out.extend(part.as_bytes());
    }
    out.push(0);
}

/// Makes a random UUID. Readers take directories with the same UUID for parts of one trace, but two exports are two
/// traces, even two exports of one capture.
pub(super) fn random_uuid() -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    uuid[8..].copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    // The version 4 and the variant of RFC 9562.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::new();
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        _ = write!(text, "{byte:02x}");
    }
    text
}
