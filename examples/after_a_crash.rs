//! The events that a program has recorded can still be read after the program has crashed.
//!
//! ```console
//! $ cargo run --example after_a_crash
//! ```
//!
//! The program starts itself a second time. The second process records and aborts. Then the first process reads the
//! ring of the second process.

use eventring::reader::{Next, Reader, RingState, Seek};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::{EventPayload, EventType, record};
use std::error::Error;
use std::process::Command;

const RING: &str = "after-a-crash:16:27";

#[derive(EventPayload)]
struct Step {
    number: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 302, name = "STEPS")]
#[repr(u16)]
enum Steps {
    #[event(payload = Step)]
    Begun = 2,
    #[event(payload = Step)]
    Done = 3,
}

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("crash") => crash(),
        _ => look(),
    }
}

/// Records with its own recorder, not with a global one, and dies in the middle of a step.
fn crash() -> Result<(), Box<dyn Error>> {
    let recorder = Recorder::builder(ContentDescription::from_event_type::<Steps>()).config(RING).build()?;
    for number in 1.. {
        record!(recorder => Steps::Begun, &Step { number });
        if number == 7 {
            // The program need not flush anything before it dies: the events are in shared memory already.
            std::process::abort();
        }
        record!(recorder => Steps::Done, &Step { number });
    }
    Ok(())
}

fn look() -> Result<(), Box<dyn Error>> {
    let status = Command::new(std::env::current_exe()?).arg("crash").status()?;
    println!("the program has ended: {status}");

    // A reader in the same program can ask for its own event type. If the ring has another schema, this call returns
    // an error.
    let reader = Reader::open_typed::<Steps>("after-a-crash")?;
    assert_eq!(reader.state(), RingState::WriterDied);
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let mut buffer = Vec::new();
    let mut last = String::from("nothing");
    while let Next::Event(event) = cursor.next() {
        let Some(payload) = cursor.payload(&event, &mut buffer).valid() else { continue };
        let step = Step::decode_exact(payload)?;
        let what = if event.event_type == Steps::Begun as u16 { "begun" } else { "done" };
        last = format!("step {} {what}", step.number);
    }
    println!("the last event: {last}");

    // The ring file of a dead writer stays until it is removed: by the next writer that uses the name, by `eventring
    // clean`, or by this call.
    if let Some(path) = reader.path() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
