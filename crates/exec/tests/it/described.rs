//! Rings of a schema that nobody knows by its hash: a description of it is enough.

use crate::{events, kept};
use eventring::reader::Reader;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring::schema::{EventType as _, SchemaModel, give_schema};
use eventring_exec::{Block, BlockUpdate, Blocks, Dialect, Wanted};
use std::sync::Arc;

const HASH: [u8; 32] = [0x5a; 32];

/// Today's schema as it might be tomorrow: other codes, a field in front of BLOCK_END, one between TXN_LOG and its
/// arrays.
fn tomorrow() -> String {
    let mut text = String::new();
    let mut in_block_end = false;
    for line in ExecEvent::schema().text().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        in_block_end &= words[0] != "struct" && words[0] != "event";
        let number = |word: &str| word.parse::<usize>().unwrap();
        text += &match *words {
            ["hash", _] => format!("hash {}", "5a".repeat(32)),
            ["struct", "BlockEnd", bytes] => {
                in_block_end = true;
                format!("struct BlockEnd {}\nfield burnt u64 0 8", number(bytes) + 8)
            }
            ["field", name, ty, at, bytes] if in_block_end => format!("field {name} {ty} {} {bytes}", number(at) + 8),
            ["struct", "TxnLog", _] => "struct TxnLog 40".to_owned(),
            ["field", "data_length", "u32", "28", "4"] => format!("{line}\nfield origin u64 32 8"),
            ["event", code, ..] if code != "1" => {
                format!("event {} {}", tomorrows_code(number(code) as u16), words[2..].join(" "))
            }
            _ => line.to_owned(),
        };
        text.push('\n');
    }
    text
}

fn tomorrows_code(code: u16) -> u16 {
    if code == 1 { 1 } else { code + 40 }
}

fn tomorrows_payload(code: u16, payload: &[u8]) -> Vec<u8> {
    let at = match ExecEvent::from_code(code) {
        Some(ExecEvent::BlockEnd) => 0,
        Some(ExecEvent::TxnLog) => 32,
        _ => return payload.to_vec(),
    };
    [&payload[..at], &[7; 8], &payload[at..]].concat()
}

/// Records the kept events as tomorrow's node would.
fn node(text: Option<&str>) -> Recorder {
    let described = ContentDescription::new(2, "EXEC").schema_hash(HASH).schema_text(text.unwrap_or_default());
    let recorder = Recorder::builder(described).anonymous().build().unwrap();
    for (event, payload) in events(&kept()) {
        let payload = tomorrows_payload(event.event_type, &payload);
        let code = tomorrows_code(event.event_type);
        let mut reserved = recorder.reserve(code, event.content_ext, payload.len() as u64).unwrap();
        reserved.set_epoch_nanos(event.record_epoch_nanos);
        reserved.append(&payload);
        assert_eq!(reserved.commit(), event.seqno);
    }
    recorder
}

fn blocks(reader: &Reader) -> Vec<Arc<Block>> {
    let updates = Blocks::of_ring(reader, Wanted::ALL).unwrap().filter_map(|update| match update {
        BlockUpdate::Changed(update) => update.block,
        _ => None,
    });
    updates.collect()
}

#[test]
fn blocks_of_a_schema_that_is_known_from_its_text_only_are_those_of_today() {
    let expected = blocks(&kept());
    assert!(!expected.is_empty());
    let text = tomorrow();
    let read = |recorder: Recorder| {
        let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
        drop(recorder);
        reader
    };
    // The ring describes itself.
    assert_eq!(blocks(&read(node(Some(&text)))), expected);
    // The ring of another implementation does not.
    let ring = read(node(None));
    let refused = Blocks::of_ring(&ring, Wanted::ALL).unwrap_err().to_string();
    assert!(refused.contains("is not known") && refused.contains("--schema FILE"), "{refused}");
    give_schema(SchemaModel::parse(&text).unwrap());
    assert_eq!(blocks(&ring), expected);
}

#[test]
fn a_schema_without_a_field_that_blocks_are_made_of_is_refused_and_the_field_named() {
    let text = tomorrow().replace("field gas_used u64 360 8\n", "");
    let model = SchemaModel::parse(&text).unwrap();
    let refused = Dialect::of_schema(2, HASH, Some(&model)).unwrap_err().to_string();
    assert!(refused.contains("BLOCK_END.gas_used is not in the ring"), "{refused}");
    // Events that are no more are no fault: they never come.
    let without: String =
        tomorrow().lines().filter(|line| !line.contains("PERF_EVM")).map(|line| line.to_owned() + "\n").collect();
    let model = SchemaModel::parse(&without).unwrap();
    Dialect::of_schema(2, HASH, Some(&model)).unwrap();
}
