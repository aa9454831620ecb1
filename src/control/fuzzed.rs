//! The functions that the fuzzer calls with messages.

use super::served_file::ServedFile;
use super::wire::{Answer, ClientRequest, WireMessage as _};

/// Decodes bytes as a request and as an answer, for the fuzzer. What can be decoded must come back when it is encoded,
/// and the name of a ring must be one part of a path.
pub fn decode_messages(bytes: &[u8]) {
    if let Ok((number, request)) = ClientRequest::decode(bytes) {
        assert_eq!(ClientRequest::decode(&request.encode(number)), Ok((number, request)));
    }
    if let Ok((number, answer)) = Answer::decode(bytes) {
        if let Answer::File(info) = &answer {
            let file = ServedFile::new(info.clone());
            let name = std::path::Path::new(file.name());
            assert!(name.file_name().is_some_and(|last| last == name.as_os_str()), "{name:?}");
        }
        assert_eq!(Answer::decode(&answer.encode(number)), Ok((number, answer)));
    }
}
