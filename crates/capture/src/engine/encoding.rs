//! The threads that encode and compress blocks.

use crate::engine::slots::Message;
use crate::error::CaptureError;
use crate::format::columns::BlockEncoder;
use crate::format::fit::no_encoding;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender};

/// A message with its number, or the error that its records could not be encoded.
pub(crate) type Encoded = (u64, Result<Message, CaptureError>);

/// Returns how many threads encode. The program that is captured needs the other processors.
pub(crate) fn threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / 2).clamp(1, 4)
}

/// Encodes the records of messages until no more come. `level` is the requested level of compression.
pub(crate) fn run(messages: &Mutex<Receiver<(u64, Message)>>, out: &Sender<Encoded>, level: i32) {
    let mut encoder = BlockEncoder::new();
    loop {
        // If another encoding thread has panicked, the capture is over.
        let Ok(received) = messages.lock().map(|messages| messages.recv()) else { return };
        let Ok((number, mut message)) = received else { return };
        let result = match &mut message {
            Message::Records(slot) => {
                let slot = &mut **slot;
                let all = slot.records.all();
                let result = encoder
                    .set_level(slot.level)
                    .and_then(|()| encoder.encode(&slot.records, &all, &slot.layout, &mut slot.block));
                slot.block.is_lower_level = slot.level < level;
                result.map_err(no_encoding)
            }
            Message::Found(_) | Message::Done(_) => Ok(()),
        };
        if out.send((number, result.map(|()| message))).is_err() {
            return;
        }
    }
}
