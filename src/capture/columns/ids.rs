//! A column of ids, such as span ids. Most ids were new a moment ago: a span is created, entered, exited and closed
//! within a few events of its thread. So an id is written as the answer to the question "how many other ids were new
//! since this one was?", which takes one byte and compresses well. An id that is not remembered is written as a whole.

/// The code of the id 0, which names nothing.
const NONE: u8 = 0;
/// The code of an id that is not among the remembered ones.
const NEW: u8 = 255;
/// The number of ids that are remembered. The code of a remembered id is the number of ids that were new after it, plus
/// one.
const REMEMBERED: u64 = 254;

/// The number of slots of the table in which the writer looks ids up, a power of two.
const SLOTS: usize = 1024;

/// The ids that a writer has written.
pub(super) struct IdWriter {
    /// For each slot, an id and the number of new ids up to it.
    slots: Vec<(u64, u64)>,
    new_ids: u64,
}

impl IdWriter {
    pub(super) fn new() -> Self {
        Self { slots: vec![(0, 0); SLOTS], new_ids: 0 }
    }

    /// Forgets all ids.
    pub(super) fn clear(&mut self) {
        self.slots.fill((0, 0));
        self.new_ids = 0;
    }

    /// Returns the code of `id`. If the id is not remembered, adds it to `new_ids`.
    #[inline]
    pub(super) fn code(&mut self, id: u64, new_ids: &mut Vec<u64>) -> u8 {
        if id == 0 {
            return NONE;
        }
        let slot = &mut self.slots[(id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize];
        let later = self.new_ids - slot.1;
        // Another id may have taken the slot. Then this id counts as new, though the reader still remembers it. That
        // costs a few bytes and does no harm.
        if slot.0 == id && later < REMEMBERED {
            return later as u8 + 1;
        }
        self.new_ids += 1;
        *slot = (id, self.new_ids);
        new_ids.push(id);
        NEW
    }
}

/// The ids that a reader has read.
pub(super) struct IdReader {
    recent: [u64; REMEMBERED as usize],
    new_ids: usize,
}

impl IdReader {
    pub(super) fn new() -> Self {
        Self { recent: [0; REMEMBERED as usize], new_ids: 0 }
    }

    /// Returns the id of a code. `new_ids` are the ids that were written as a whole. Returns `None` if the code is that
    /// of an id that was never written.
    #[inline]
    pub(super) fn id(&mut self, code: u8, new_ids: &[u64]) -> Option<u64> {
        match code {
            NONE => Some(0),
            NEW => {
                let id = *new_ids.get(self.new_ids)?;
                self.recent[self.new_ids % REMEMBERED as usize] = id;
                self.new_ids += 1;
                Some(id)
            }
            code => {
                let at = self.new_ids.checked_sub(usize::from(code))?;
                Some(self.recent[at % REMEMBERED as usize])
            }
        }
    }

    /// Returns how many ids of a column are written as a whole.
    pub(super) fn count_new(codes: &[u8]) -> usize {
        codes.iter().filter(|code| **code == NEW).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_is_remembered_until_254_others_were_new() {
        let (mut writer, mut new_ids) = (IdWriter::new(), Vec::new());
        let codes: Vec<u8> = [7, 7, 0, 9, 7].iter().map(|id| writer.code(*id, &mut new_ids)).collect();
        assert_eq!((codes, &new_ids[..]), (vec![NEW, 1, NONE, NEW, 2], &[7, 9][..]));
        let mut reader = IdReader::new();
        assert_eq!(reader.id(1, &new_ids), None);
        let ids: Vec<u64> = [NEW, 1, NONE, NEW, 2].iter().map(|code| reader.id(*code, &new_ids).unwrap()).collect();
        assert_eq!(ids, [7, 7, 0, 9, 7]);
        assert_eq!((reader.id(NEW, &new_ids), reader.id(3, &new_ids)), (None, None));
    }

    proptest! {
        #[test]
        fn any_ids_come_back(ids in prop::collection::vec(prop_oneof![0_u64..600, any::<u64>()], 0..3000)) {
            let (mut writer, mut new_ids) = (IdWriter::new(), Vec::new());
            let codes: Vec<u8> = ids.iter().map(|id| writer.code(*id, &mut new_ids)).collect();
            let mut reader = IdReader::new();
            let back: Vec<u64> = codes.iter().map(|code| reader.id(*code, &new_ids).unwrap()).collect();
            prop_assert_eq!(back, ids);
            prop_assert_eq!(IdReader::count_new(&codes), new_ids.len());
        }
    }
}
