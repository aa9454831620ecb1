//! Rings of this host, in which the events of others are live.

use crate::cli::exit::{Exit, Failure};
use eventring::__internals::tracing::ReplayedRecorder;
use eventring::capture::{CaptureFile, CapturedContent, CapturedPayload, CapturedRing, RingRole};
use eventring::recorder::{ContentDescription, Recorder};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The sizes of the rings, as shifts: a million events, 128 MiB.
const SHIFTS: (u32, u32) = (20, 27);

/// The identity of a ring of another host.
type Identity = (String, String, u32, u64);

/// Rings in a directory, one for each recorder of each host. All shards of a recorder are one ring.
pub(super) struct LiveRings {
    directory: PathBuf,
    rings: HashMap<Identity, ReplayedRecorder>,
    /// The last seqno of each ring that was recorded here.
    last_seqnos: HashMap<Identity, u64>,
}

impl LiveRings {
    pub(super) fn in_directory(directory: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory).map_err(|error| Failure::writing(directory, &error))?;
        Ok(Self { directory: directory.to_path_buf(), rings: HashMap::new(), last_seqnos: HashMap::new() })
    }

    /// Records the events of a batch, as far as they are new. Events without their payload are left out: they would not
    /// be the events that were recorded.
    pub(super) fn record(&mut self, batch: &CaptureFile) -> anyhow::Result<()> {
        let rings = batch.rings();
        for (index, ring) in rings.iter().enumerate() {
            if recorder_of(ring, index) == index {
                if !self.rings.contains_key(&identity(ring)) {
                    self.rings.insert(identity(ring), self.make(ring)?);
                }
                if let Some(made) = self.rings.get_mut(&identity(ring)) {
                    made.learn(&batch.catalog(index as u32));
                }
            }
        }
        for record in batch.events() {
            let index = record.ring as usize;
            let CapturedContent::Event { descriptor, payload: CapturedPayload::Valid(payload) } = record.content else {
                continue;
            };
            let last_seqno = self.last_seqnos.entry(identity(&rings[index])).or_default();
            if descriptor.seqno <= *last_seqno {
                continue;
            }
            *last_seqno = descriptor.seqno;
            if let Some(ring) = self.rings.get(&identity(&rings[recorder_of(&rings[index], index)])) {
                let (event_type, ext) = (descriptor.event_type, descriptor.content_ext);
                ring.record(descriptor.record_epoch_nanos, event_type, ext, &payload);
            }
        }
        Ok(())
    }

    fn make(&self, ring: &CapturedRing) -> anyhow::Result<ReplayedRecorder> {
        let description = ContentDescription::new(ring.content_type, ring.content_name.clone())
            .schema_hash(ring.schema_hash)
            .schema_text(ring.schema_text.clone());
        // Names come from the stream, and are not trusted.
        let name: String = format!("{}.{}", ring.host, ring.name);
        let name = name.replace(['/', '\0', ':'], "_");
        let path = self.directory.join(name.trim_start_matches('.'));
        // Who receives a stream to its end wants to read the rings afterwards.
        let builder =
            Recorder::builder(description).config(&path).shifts(SHIFTS.0, SHIFTS.1).prefault(false).keep(true);
        ReplayedRecorder::new(builder, ring.is_perf()).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot make a ring for {}: {error}", ring.name)).into()
        })
    }
}

fn identity(ring: &CapturedRing) -> Identity {
    (ring.host.clone(), ring.name.clone(), ring.pid, ring.created_epoch_nanos)
}

/// Returns the index of the ring with which a ring is one recorder.
fn recorder_of(ring: &CapturedRing, index: usize) -> usize {
    match ring.role {
        RingRole::Shard { recorder, .. } => recorder as usize,
        RingRole::Single => index,
    }
}
