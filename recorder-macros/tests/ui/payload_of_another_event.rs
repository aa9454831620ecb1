//! An event that is recorded with the payload of another event is refused, at the place of the call.
use eventring::recorder::Recorder;
use eventring::schema::exec::{BlockEnd, BlockStart, ExecEvent};
use eventring::record;

fn record(recorder: &Recorder, start: &BlockStart, end: BlockEnd) {
    record!(recorder => ExecEvent::BlockStart, start);
    record!(recorder => ExecEvent::BlockStart, end);
    record!(recorder => ExecEvent::BlockEnd);
    record!(recorder => ExecEvent::TxnEnd, 7u32);
}

fn main() {}
