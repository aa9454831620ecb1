//! The table `rings`: a row for each ring of the capture.

use super::columns::{Column, amount};
use super::table::RowColumns;
use arrow_array::builder::{Int64Builder, StringBuilder, UInt32Builder, UInt64Builder};
use eventring_capture::{CapturedRing, RingRole};

/// The column with the time by which rings are sorted.
pub(super) const TIME: &str = "created_ns";

#[derive(Default)]
pub(super) struct RingColumns {
    name: StringBuilder,
    process: UInt32Builder,
    pid: UInt32Builder,
    program: StringBuilder,
    content_type: UInt32Builder,
    content_name: StringBuilder,
    shard: UInt32Builder,
    first_seqno: UInt64Builder,
    created: Int64Builder,
    host: StringBuilder,
    filter: StringBuilder,
    sampled_per_million: UInt32Builder,
}

impl RingColumns {
    pub(super) fn push(&mut self, ring: &CapturedRing) {
        let shard = match ring.role {
            RingRole::Shard { shard, .. } => Some(shard),
            RingRole::Single => None,
        };
        self.name.append_value(&ring.name);
        self.process.append_value(ring.process);
        self.pid.append_value(ring.pid);
        self.program.append_value(&ring.program_name);
        self.content_type.append_value(ring.content_type.into());
        self.content_name.append_value(&ring.content_name);
        self.shard.append_option(shard);
        self.first_seqno.append_value(ring.first_seqno);
        self.created.append_value(amount(ring.created_epoch_nanos));
        // JSON lines, too, leave out what a capture does not say.
        let says_its_filter = ring.says_its_filter();
        self.host.append_option((!ring.host.is_empty()).then_some(&ring.host));
        self.filter.append_option(says_its_filter.then_some(&ring.filter));
        self.sampled_per_million.append_option(says_its_filter.then_some(ring.sampled_per_million));
    }
}

impl RowColumns for RingColumns {
    fn columns(&mut self) -> Vec<(&str, &mut dyn Column)> {
        vec![
            ("name", &mut self.name),
            ("process", &mut self.process),
            ("pid", &mut self.pid),
            ("program", &mut self.program),
            ("content_type", &mut self.content_type),
            ("content_name", &mut self.content_name),
            ("shard", &mut self.shard),
            ("first_seqno", &mut self.first_seqno),
            (TIME, &mut self.created),
            ("host", &mut self.host),
            ("filter", &mut self.filter),
            ("sampled_per_million", &mut self.sampled_per_million),
        ]
    }
}
