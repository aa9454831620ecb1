//! The messages of a capture, as lines of JSON. Each line is one request, as in the files that collectors read and
//! write.

use super::batch::LINE_BYTES;
use super::consumer::OtlpConsumer;
use super::mapper::OtlpMapper;
use eventring_capture::recording::{CaptureRecording, replay_capture, write_error};
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::ExportSummary;
use serde::Serialize;
use std::io::{self, Write};

/// Writes the requests of a capture, a line each.
///
/// # Errors
/// The capture would take too much memory, writing fails, or a perf ring has a schema of another version.
pub fn write(capture: &CaptureFile, out: &mut dyn Write) -> Result<ExportSummary, CaptureError> {
    let recording = &CaptureRecording::new(capture)?;
    let mut mapper = OtlpMapper::new(LINE_BYTES).since(capture.started_epoch_nanos());
    let mut text = Vec::new();
    let mut leave = |mapper: &mut OtlpMapper| {
        let requests = mapper.take();
        text.clear();
        if let Some(traces) = &requests.traces {
            line(&mut text, traces)?;
        }
        if let Some(logs) = &requests.logs {
            line(&mut text, logs)?;
        }
        out.write_all(&text)
    };
    let counts = replay_capture(recording, &mut OtlpConsumer { mapper: &mut mapper, leave: &mut leave })?;
    leave(&mut mapper).and_then(|()| out.flush()).map_err(write_error)?;
    Ok(counts)
}

fn line(text: &mut Vec<u8>, request: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, request)?;
    text.push(b'\n');
    Ok(())
}
