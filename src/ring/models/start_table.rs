//! The block table: a record is read whole or not at all.

use super::event::PAYLOAD_BYTES;
use super::explore::{beside, explore};
use crate::layout::Geometry;
use crate::layout::start_table::{ENTRIES, RECORD_WORDS, TABLE_BYTES};
use crate::ring::heap::HeapMemory;
use crate::ring::start_table::{self, RecordWords};
use std::sync::Arc;

/// Returns the record of the block with this flow tag. Each word differs from every word of other blocks.
fn record(tag: u64) -> RecordWords {
    std::array::from_fn(|index| tag * RECORD_WORDS as u64 + index as u64)
}

fn put(memory: &HeapMemory, tag: u64) -> bool {
    start_table::put(memory, tag, &record(tag))
}

/// Looks for a block. Asserts that its record is whole if it is there.
fn find(memory: &HeapMemory, tag: u64) -> &'static str {
    match start_table::find(memory, tag) {
        Some(found) => {
            assert_eq!(found, record(tag), "torn record of block {tag}");
            "whole"
        }
        None => "absent",
    }
}

/// Returns a ring whose table has no free entry: it holds the blocks 1 and 2.
fn full_table() -> Arc<HeapMemory> {
    let geometry = Geometry::new(2, PAYLOAD_BYTES, TABLE_BYTES).unwrap();
    let memory = HeapMemory::new(geometry, 1);
    start_table::make(&memory);
    assert!(start_table::exists(&memory) && (1..=ENTRIES).all(|tag| put(&memory, tag)));
    Arc::new(memory)
}

#[test]
fn a_block_is_replaced_while_it_is_read() {
    explore("replaced_block", 3, &["whole", "absent"], |tally| {
        let memory = full_table();
        let writer = beside(&memory, |memory| assert!(put(memory, 3)));
        for tag in [1, 3] {
            tally.saw(find(&memory, tag));
        }
        writer.join().unwrap();
        assert_eq!([1, 2, 3].map(|tag| find(&memory, tag)), ["absent", "whole", "whole"]);
    });
}

#[test]
fn writers_of_blocks_come_to_one_entry() {
    explore("two_block_writers", 2, &["whole", "absent", "all put", "refused"], |tally| {
        let memory = full_table();
        let slow = beside(&memory, |memory| put(memory, 3));
        let fast = beside(&memory, |memory| [4, 5].map(|tag| put(memory, tag)));
        tally.saw(find(&memory, 5));
        let (third, [fourth, fifth]) = (slow.join().unwrap(), fast.join().unwrap());
        tally.saw(if third && fourth && fifth { "all put" } else { "refused" });
        // At rest, every entry holds a whole record of a block that was put.
        let there = (1..=5).filter(|tag| find(&memory, *tag) == "whole").count();
        assert_eq!(there, ENTRIES as usize);
    });
}
