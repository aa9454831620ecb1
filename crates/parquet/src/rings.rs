//! The table `rings`: a row for each ring of the capture.

use super::numbers::{Amounts, Ids, Numbers, amounts, ids, numbers, texts};
use super::table::RowColumns;
use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;
use arrow_schema::Field;
use eventring_capture::{CapturedRing, RingRole};
use std::io;
use std::sync::Arc;

/// The column with the time by which rings are sorted.
pub(super) const TIME: &str = "created_ns";

#[derive(Default)]
pub(super) struct RingColumns {
    name: StringBuilder,
    process: Numbers,
    pid: Numbers,
    program: StringBuilder,
    content_type: Numbers,
    content_name: StringBuilder,
    shard: Numbers,
    first_seqno: Ids,
    created: Amounts,
    host: StringBuilder,
    filter: StringBuilder,
    sampled_per_million: Numbers,
}

impl RingColumns {
    pub(super) fn push(&mut self, ring: &CapturedRing) {
        let shard = match ring.role {
            RingRole::Shard { shard, .. } => Some(shard),
            RingRole::Single => None,
        };
        self.name.append_value(&ring.name);
        self.process.push(Some(ring.process));
        self.pid.push(Some(ring.pid));
        self.program.append_value(&ring.program_name);
        self.content_type.push(Some(ring.content_type.into()));
        self.content_name.append_value(&ring.content_name);
        self.shard.push(shard);
        self.first_seqno.push(Some(ring.first_seqno));
        self.created.push(Some(ring.created_epoch_nanos));
        // Only a capture that was forwarded names its host and filter. JSON lines leave the three out, too.
        let is_of_host = !ring.host.is_empty();
        self.host.append_option(is_of_host.then_some(&ring.host));
        self.filter.append_option(is_of_host.then_some(&ring.filter));
        self.sampled_per_million.push(is_of_host.then_some(ring.sampled_per_million));
    }
}

impl RowColumns for RingColumns {
    fn fields(&self) -> Vec<Field> {
        vec![
            texts("name"),
            numbers("process"),
            numbers("pid"),
            texts("program"),
            numbers("content_type"),
            texts("content_name"),
            numbers("shard"),
            ids("first_seqno"),
            amounts(TIME),
            texts("host"),
            texts("filter"),
            numbers("sampled_per_million"),
        ]
    }

    fn finish(&mut self) -> io::Result<Vec<ArrayRef>> {
        Ok(vec![
            Arc::new(self.name.finish()),
            self.process.finish(),
            self.pid.finish(),
            Arc::new(self.program.finish()),
            self.content_type.finish(),
            Arc::new(self.content_name.finish()),
            self.shard.finish(),
            self.first_seqno.finish(),
            self.created.finish(),
            Arc::new(self.host.finish()),
            Arc::new(self.filter.finish()),
            self.sampled_per_million.finish(),
        ])
    }
}
