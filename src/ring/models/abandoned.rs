//! Model of a reservation that is dropped before its commit. A complete RECORD_ERROR event is committed with the
//! reservation's seqno. Its payload replaces the bytes that the reservation had written.

use super::event::{SMALL_BYTES, bound_payload, read, record, ring};
use super::explore::{beside, explore};
use crate::layout::record_error::{self, ErrorType};
use crate::ring::commit::DescriptorFields;
use crate::ring::observe::{self, Observation};

#[test]
fn an_abandoned_reservation_becomes_a_whole_record_error() {
    explore("abandoned", 3, &["record error", "not yet", "whole"], |tally| {
        let ring = ring(2);
        let error = record_error::encode(ErrorType::MissingEvent, 7, 0, SMALL_BYTES);
        let writer = beside(&ring, move |ring| {
            let cursor = ring.cursors().get(0);
            let claim = ring.reserve(cursor, SMALL_BYTES);
            ring.fill(&claim, 0, &bound_payload(claim.seqno, SMALL_BYTES));
            // Does the same as the drop of a `Reservation`.
            ring.fill(&claim, 0, &error);
            let payload_bytes = record_error::FIXED_BYTES as u32;
            let event_type = record_error::EVENT_TYPE;
            ring.commit(
                cursor,
                claim,
                &DescriptorFields { event_type, payload_bytes, epoch_nanos: 9, content_ext: [9; 4] },
            );
            record(ring, cursor, SMALL_BYTES)
        });
        if let Observation::Event(event) = observe::descriptor(ring.memory(), 1) {
            tally.saw("record error");
            assert_eq!((event.event_type, event.payload_size), (record_error::EVENT_TYPE, 16));
            assert_eq!((event.record_epoch_nanos, event.content_ext), (9, [9; 4]));
            let mut out = [0; record_error::FIXED_BYTES];
            assert!(observe::payload(ring.memory(), &event, &mut out));
            assert_eq!(out, error);
        } else {
            tally.saw("not yet");
        }
        assert_eq!(writer.join().unwrap(), Some(2));
        tally.saw(read(ring.memory(), 2).name());
    });
}
