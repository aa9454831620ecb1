//! The reader that follows the perf ring, all shards merged, from the first events to the end.

use super::follow::{Followed, PATIENCE};
use super::spans::{Judgement, judge};
use eventring::reader::{Gap, Reader};
use eventring::tracing::{PerfItem, PerfReader, PerfSource};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A follower at work.
pub(super) struct PerfFollowing(Receiver<Followed>);

/// Starts one on the rings that are at `ring` now.
pub(super) fn start(ring: &Path) -> anyhow::Result<PerfFollowing> {
    let reader = PerfReader::open(ring)?;
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let _ = tell.send(follow(reader));
    });
    Ok(PerfFollowing(told))
}

impl PerfFollowing {
    /// What it found, once the rings have ended; `None` if it does not come to an end.
    pub(super) fn end(self) -> Option<Followed> {
        self.0.recv_timeout(PATIENCE).ok()
    }
}

/// What comes next of one shard, if nothing is left out.
#[derive(Clone, Copy, Default)]
struct Course {
    next_seqno: Option<u64>,
}

impl Course {
    /// Goes on by `count` from `first_seqno`. What came before the first is lost; a jump later is unaccounted.
    fn go(&mut self, first_seqno: u64, count: u64, found: &mut Followed) {
        match self.next_seqno {
            None => found.lost += first_seqno - 1,
            Some(next) => found.unaccounted += next.abs_diff(first_seqno),
        }
        self.next_seqno = Some(first_seqno + count);
    }
}

fn follow(mut reader: PerfReader) -> Followed {
    let mut found = Followed::default();
    let mut courses = Vec::<Course>::new();
    loop {
        match reader.next_timeout(Duration::from_millis(200)) {
            Some(PerfItem::Record(record)) => {
                course(&mut courses, record.shard).go(record.seqno, 1, &mut found);
                found.read += 1;
                match judge(&record.content) {
                    Judgement::Whole => {}
                    Judgement::Expired => found.expired += 1,
                    Judgement::Torn => found.torn += 1,
                }
            }
            Some(PerfItem::Gap { source: PerfSource::Shard(shard), gap: Gap { first_seqno, count, .. } }) => {
                course(&mut courses, shard).go(first_seqno, count, &mut found);
                found.lost += count;
            }
            Some(_) => {}
            None if reader.has_ended() => break,
            None => {}
        }
    }
    for shard in reader.shards() {
        let index = shard.info().extension.map_or(0, |extension| extension.shard_index as usize);
        let last = last_seqno(shard);
        found.last_seqno += last;
        found.laps += last / shard.info().geometry.descriptor_capacity();
        let next = courses.get(index).and_then(|course| course.next_seqno).unwrap_or(1);
        found.unaccounted += (last + 1).abs_diff(next);
    }
    found
}

fn course(courses: &mut Vec<Course>, shard: u32) -> &mut Course {
    let index = shard as usize;
    if courses.len() <= index {
        courses.resize(index + 1, Course::default());
    }
    &mut courses[index]
}

fn last_seqno(shard: &Reader) -> u64 {
    shard.info().last_seqno
}
