//! A writer that is killed at any instruction leaves a block table in which every record is whole.

use super::block_table::{assert_whole, start};
use crate::fixtures::*;

const KILLS: u64 = 25;
/// The number of threads that start blocks.
const THREADS: u64 = 2;

/// Starts blocks until the process is killed.
fn write() {
    let builder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).config(place()).compact(true);
    let recorder = builder.shifts(15, 24).block_table(true).build().unwrap();
    say("ring");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            scope.spawn(move || {
                for index in 0.. {
                    record!(recorder => ExecEvent::BlockStart, &start(thread << 32 | index));
                }
            });
        }
    });
}

#[test]
fn a_writer_that_is_killed_leaves_only_whole_records() {
    let test = plays!(write());
    let (_directory, [path]) = places(["ring"]);
    for round in 0..KILLS {
        let mut writer = Talk::told(test, "writer", &path, "ring");
        std::thread::sleep(Duration::from_micros(round * 700));
        writer.kill();
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.state(), RingState::WriterDied);
        let blocks = reader.blocks().unwrap();
        blocks.iter().for_each(|block| _ = assert_whole(block));
        // Every committed BLOCK_START is described, up to the size of the table. A thread that stalls for as many
        // blocks as the table has may find its entry taken; this is counted.
        let mut cursor = reader.cursor();
        cursor.seek(Seek::Last(4096 - 2 * THREADS));
        let mut missing = 0;
        while cursor.lag() > 0 {
            match cursor.next() {
                Next::Event(event) => match reader.block_of(&event) {
                    Some(block) => assert_eq!(
                        (block.start_seqno(), block.start_epoch_nanos()),
                        (Some(event.seqno), event.record_epoch_nanos)
                    ),
                    None => missing += 1,
                },
                Next::Gap(_) => {}
                Next::NotReady => drop(cursor.pass_unready(reader.info().last_seqno)),
            }
        }
        assert!(missing <= reader.info().extension.unwrap().table_overflows, "{missing} of {}", blocks.len());
        std::fs::remove_file(&path).unwrap();
    }
}
