//! Every payload of the published recordings is decoded twice: by its Rust type, and by schema text alone. Both
//! results agree.

use std::collections::BTreeMap;
use std::io::Read as _;

use eventring::schema::exec::{ExecEvent, ExecPayload};
use eventring::schema::{EventType, Value};

/// The most bytes to decompress from a file. A decompressed file has about 150 MB, so a larger one is a wrong file.
const MAX_IMAGE_BYTES: u64 = 1 << 30;

/// An event of a ring image: code and payload.
type Event = (u16, Vec<u8>);

/// Reads the descriptors and payloads of a ring image by the published offsets, without the reader of this crate.
fn events(image: &[u8]) -> Vec<Event> {
    let word = |offset: usize| u64::from_le_bytes(image[offset..offset + 8].try_into().unwrap());
    assert_eq!(&image[..6], b"RING01");
    assert_eq!(image[8..40], ExecEvent::schema_hash());
    let (capacity, payload_bytes, last_seqno) = (word(40) as usize, word(48) as usize, word(64));
    let descriptors = 2 << 20;
    let payloads = descriptors + capacity * 64;
    (1..=last_seqno)
        .map(|seqno| {
            let descriptor = descriptors + (seqno as usize - 1) % capacity * 64;
            assert_eq!(word(descriptor), seqno);
            let code = u16::from_le_bytes(image[descriptor + 8..descriptor + 10].try_into().unwrap());
            let bytes = u32::from_le_bytes(image[descriptor + 12..descriptor + 16].try_into().unwrap()) as usize;
            let start = payloads + word(descriptor + 24) as usize % payload_bytes;
            (code, image[start..start + bytes].to_vec())
        })
        .collect()
}

/// Returns the events of a file in the directory of shared data. Returns `None`, after printing why, if the file is
/// not there.
fn recorded(file: &str) -> Option<Vec<Event>> {
    let path = format!("{}/../shared/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let Ok(compressed) = std::fs::File::open(&path) else {
        eventring_stress::skipped(format_args!("{path} is not there"));
        return None;
    };
    let mut image = Vec::new();
    zstd::Decoder::new(compressed).unwrap().take(MAX_IMAGE_BYTES).read_to_end(&mut image).unwrap();
    // The files lack some bytes at the end of the payload buffer.
    image.extend([0; 16]);
    Some(events(&image))
}

/// Asserts that both decoded values have equal fields. The test takes some fields of each kind: a hash, an address, a
/// 256-bit number, a bool, an enum, counts and trailing arrays.
fn assert_same(typed: &ExecPayload<'_>, value: &Value<'_>) {
    let text = |path: &str| format!("{:#}", value.get(path).unwrap_or_else(|| panic!("no {path} in {value}")));
    match typed {
        ExecPayload::BlockStart(start) => {
            assert_eq!(text("block_tag.id"), start.block_tag.id.to_string());
            assert_eq!(text("proposal_epoch_nanos"), start.proposal_epoch_nanos.to_string());
            assert_eq!(text("eth_block_input.base_fee_per_gas"), start.eth_block_input.base_fee_per_gas.to_string());
            assert_eq!(text("monad_block_input.base_fee_moment"), start.monad_block_input.base_fee_moment.to_string());
        }
        ExecPayload::BlockEnd(end) => {
            assert_eq!(text("logs_bloom"), end.logs_bloom.to_string());
            assert_eq!(text("gas_used"), end.gas_used.to_string());
        }
        ExecPayload::TxnHeaderStart(view) => {
            assert_eq!(text("sender"), view.fixed.sender.to_string());
            assert_eq!(text("txn_header.value"), view.fixed.txn_header.value.to_string());
            assert_eq!(text("txn_header.y_parity"), view.fixed.txn_header.y_parity.to_string());
            assert_eq!(value.get("data"), Some(&Value::Bytes(view.data.as_bytes())));
        }
        ExecPayload::TxnLog(view) => {
            let topics: Vec<String> = view.topics.to_vec().unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(text("topics"), format!("[{}]", topics.join(", ")));
            assert_eq!(value.get("data"), Some(&Value::Bytes(view.data.as_bytes())));
        }
        ExecPayload::TxnCallFrame(view) => {
            assert_eq!(text("evmc_status"), view.fixed.evmc_status.to_string());
            assert_eq!(value.get("input"), Some(&Value::Bytes(view.input.as_bytes())));
            assert_eq!(value.get("return_value"), Some(&Value::Bytes(view.return_value.as_bytes())));
        }
        ExecPayload::AccountAccess(access) => {
            assert_eq!(text("prestate.balance"), access.prestate.balance.to_string());
            assert_eq!(text("is_nonce_modified"), access.is_nonce_modified.to_string());
        }
        ExecPayload::StorageAccess(access) => {
            assert_eq!(text("end_value"), access.end_value.to_string());
            let Some(Value::Enum { number, .. }) = value.get("access_context") else { panic!("{value}") };
            assert_eq!(*number, access.access_context as i128);
        }
        _ => {}
    }
}

fn decode_all(events: &[Event]) -> BTreeMap<u16, usize> {
    let model = ExecEvent::schema().model().unwrap();
    let mut by_code = BTreeMap::new();
    for (code, payload) in events {
        let typed = ExecPayload::decode(*code, payload).unwrap_or_else(|error| panic!("event {code}: {error}"));
        assert_eq!(typed.event().code(), *code);
        let value = model.decode(*code, payload);
        assert!(!value.has_malformed(), "{value}");
        assert_same(&typed, &value);
        *by_code.entry(*code).or_default() += 1;
    }
    by_code
}

#[test]
fn every_payload_of_thirty_blocks_decodes_without_left_over_bytes() {
    let Some(events) = recorded("emn-30b-15m.snapshot.zst") else { return };
    let expected = [
        (2, 30),
        (4, 30),
        (5, 30),
        (6, 30),
        (7, 30),
        (8, 30),
        (9, 29),
        (10, 6187),
        (11, 121),
        (13, 6187),
        (15, 6187),
        (16, 6187),
        (17, 6187),
        (18, 8299),
        (19, 21077),
        (20, 6187),
        (21, 6247),
        (22, 25530),
        (23, 38286),
    ];
    assert_eq!(decode_all(&events), BTreeMap::from(expected));
}

#[test]
fn every_payload_of_one_block_decodes_without_left_over_bytes() {
    let Some(events) = recorded("emn-1b-15m.snapshot") else { return };
    assert_eq!(decode_all(&events).values().sum::<usize>(), 6597);
}
