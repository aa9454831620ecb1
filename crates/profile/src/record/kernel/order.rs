//! Records of all buffers in the order of time. A record is passed on when no buffer can have an earlier record: after
//! two passes over all buffers that began after the record's time.

use super::body::Record;

pub(crate) struct Ordered {
    waiting: Vec<Record>,
    /// The beginning of the last look.
    last_look: u64,
    /// The time before which everything was given out.
    given_until: u64,
}

impl Ordered {
    /// Makes an order of records that are not older than `begin`.
    pub(crate) fn new(begin: u64) -> Self {
        Self { waiting: Vec::new(), last_look: begin, given_until: begin }
    }

    /// Returns the time of what is recorded now beside the records: those that were given out are older, and those that
    /// wait are not.
    pub(crate) fn given_until(&self) -> u64 {
        self.given_until
    }

    pub(crate) fn add(&mut self, record: Record) {
        self.waiting.push(record);
    }

    /// Returns the number of records that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Gives out what is older than the look before the one that has begun at `look`. With `is_last`, gives out
    /// everything. The function gets each record, and those after it.
    pub(crate) fn give_out(&mut self, look: u64, is_last: bool, mut give: impl FnMut(&Record, &[Record])) {
        self.waiting.sort_by_key(|record| record.time);
        let last_look = std::mem::replace(&mut self.last_look, look);
        self.given_until = match is_last {
            true => self.waiting.last().map_or(look, |record| look.max(record.time)),
            false => last_look,
        };
        let count = match is_last {
            true => self.waiting.len(),
            false => self.waiting.partition_point(|record| record.time < last_look),
        };
        for index in 0..count {
            give(&self.waiting[index], &self.waiting[index + 1..]);
        }
        self.waiting.drain(..count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::kernel::body::Body;

    #[test]
    fn records_of_two_looks_come_in_order_and_nothing_is_kept_at_the_end() {
        let mut ordered = Ordered::new(10);
        let mut given = Vec::new();
        let looks = [(100, &[20, 90, 30][..], false, 10), (200, &[150, 95], false, 100), (300, &[250], true, 300)];
        for (look, times, is_last, until) in looks {
            times.iter().for_each(|time| {
                ordered.add(Record { time: *time, cpu: 0, thread: 1, process: 1, body: Body::Back });
            });
            ordered.give_out(look, is_last, |record, _| given.push(record.time));
            assert_eq!(ordered.given_until(), until);
            assert!(
                given.iter().all(|time| *time < until) && ordered.waiting.iter().all(|record| record.time >= until)
            );
        }
        assert_eq!((given, ordered.len()), (vec![20, 30, 90, 95, 150, 250], 0));
    }
}
