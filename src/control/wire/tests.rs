//! Tests that encoded messages decode to the same messages, and that malformed messages are rejected.

use super::fault::TEXT_BYTES_MAX;
use super::*;
use crate::control::error::ControlErrorKind;
use crate::control::wire::SwitchedDomain;
use proptest::prelude::*;

fn life() -> impl Strategy<Value = OverrideLife> {
    prop_oneof![Just(OverrideLife::Client), any::<u64>().prop_map(OverrideLife::Millis), Just(OverrideLife::Kept)]
}

fn request() -> impl Strategy<Value = ClientRequest> {
    prop_oneof![
        ".{0,40}".prop_map(|program| ClientRequest::Hello { program }),
        Just(ClientRequest::List),
        (any::<u64>(), any::<u16>(), any::<[u8; 32]>())
            .prop_map(|(id, content_type, schema_hash)| ClientRequest::Import { id, content_type, schema_hash }),
        Just(ClientRequest::Follow),
        (life(), ".{0,200}").prop_map(|(life, directive)| ClientRequest::Override { life, directive }),
        ".{0,200}".prop_map(|directive| ClientRequest::Revoke { directive }),
        Just(ClientRequest::State),
    ]
}

fn file() -> impl Strategy<Value = ServedInfo> {
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<u16>(), any::<[u8; 32]>());
    (numbers, ".{0,40}", ".{0,40}", ".{0,80}").prop_map(|(numbers, name, content_name, path)| {
        let (id, bytes, shard_group, shard_index, content_type, schema_hash) = numbers;
        ServedInfo { id, name, path, content_type, content_name, schema_hash, bytes, shard_group, shard_index }
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let kinds = prop::sample::select(ControlErrorKind::ALL.to_vec());
    prop_oneof![
        (any::<u32>(), ".{0,40}", any::<bool>(), any::<u32>())
            .prop_map(|(pid, program, may_switch, clients)| { Answer::Welcome { pid, program, may_switch, clients } }),
        file().prop_map(Answer::File),
        file().prop_map(Answer::Added),
        any::<u64>().prop_map(|count| Answer::End { count }),
        (any::<u64>(), any::<u64>()).prop_map(|(id, bytes)| Answer::Imported { id, bytes }),
        (any::<u64>(), ".{0,80}").prop_map(|(filter_override, note)| Answer::Granted { filter_override, note }),
        (".{0,80}", ".{0,80}").prop_map(|(configured, effective)| Answer::State { configured, effective }),
        (any::<u32>(), any::<u32>(), any::<u64>(), ".{0,80}").prop_map(|(pid, uid, until_epoch_nanos, directive)| {
            Answer::Override(OverrideInfo { pid, uid, until_epoch_nanos, directive })
        }),
        (".{0,80}", any::<bool>(), any::<bool>()).prop_map(|(name, is_enabled, is_forbidden)| Answer::Domain(
            SwitchedDomain { name, is_enabled, is_forbidden }
        )),
        any::<u64>().prop_map(|id| Answer::Removed { id }),
        (kinds, ".{0,200}").prop_map(|(kind, text)| Answer::Refused { kind, text }),
    ]
}

proptest! {
    #[test]
    fn requests_and_answers_come_back(number in any::<u32>(), request in request(), answer in answer()) {
        prop_assert_eq!(ClientRequest::decode(&request.encode(number)), Ok((number, request)));
        prop_assert_eq!(Answer::decode(&answer.encode(number)), Ok((number, answer)));
    }

    #[test]
    fn every_beginning_of_a_message_and_every_longer_one_is_refused(request in request(), cut in any::<prop::sample::Index>()) {
        let bytes = request.encode(1);
        prop_assert!(ClientRequest::decode(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert_eq!(ClientRequest::decode(&[&bytes[..], &[0]].concat()), Err(WireFault::Long));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), flip in any::<(prop::sample::Index, u8)>(), answer in answer()) {
        let _ = (ClientRequest::decode(&bytes), Answer::decode(&bytes));
        let mut message = answer.encode(7);
        let at = flip.0.index(message.len());
        message[at] ^= flip.1;
        let _ = (ClientRequest::decode(&message), Answer::decode(&message));
    }
}

#[test]
fn wrong_messages_are_refused_with_their_fault() {
    let good = ClientRequest::List.encode(3);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        ClientRequest::decode(&bytes)
    };
    assert_eq!(with(0, b'X'), Err(WireFault::Magic));
    assert_eq!(with(4, 9), Err(WireFault::Version(9)));
    assert_eq!(with(6, 99), Err(WireFault::Kind(99)));
    assert_eq!(with(12, 1), Err(WireFault::Short));
    let text = ClientRequest::Revoke { directive: "x".repeat(TEXT_BYTES_MAX + 1) };
    let (_, cut) = ClientRequest::decode(&text.encode(1)).unwrap();
    assert_eq!(cut, ClientRequest::Revoke { directive: "x".repeat(TEXT_BYTES_MAX) });
    let mut hostile = ClientRequest::Revoke { directive: "x".repeat(TEXT_BYTES_MAX) }.encode(1);
    hostile[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(ClientRequest::decode(&hostile), Err(WireFault::Value(_))));
}
