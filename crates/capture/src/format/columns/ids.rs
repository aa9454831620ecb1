//! A column of ids, such as span ids. A remembered id is written as the number of ids that were new after it, as a code
//! of one byte. The number is mostly small, so it compresses well. The writer and the reader remember the last 254 new
//! ids. Any other id is written as a whole.

/// The code of the id 0, which names nothing.
const NONE: u8 = 0;
/// The code of an id that is not among the remembered ones.
const NEW: u8 = 255;
/// The number of ids that are remembered. The code of a remembered id is the number of ids that were new after it, plus
/// one.
const REMEMBERED: u64 = 254;

/// The number of slots of the table in which the writer looks ids up, a power of two.
const SLOTS: usize = 1024;
/// The number of slots of the table of generations, a power of two.
const GENERATION_SLOTS: usize = 4096;
/// An id has two parts. The low bits name a place in the table of open spans of the recording program, the high bits
/// count how often the place was used. (Ids that were made in another way take more bytes, and that is all.)
const PLACE_BITS: u32 = 24;

/// The ids that were written as a whole, in two parts: the places, and the generations. A generation is written as the
/// difference from the last one of the same place.
#[derive(Default)]
pub(super) struct NewIds {
    pub(super) places: Vec<u64>,
    pub(super) generations: Vec<u64>,
}

/// The last generation of each place, as far as it is remembered.
struct Generations(Vec<(u64, u64)>);

impl Generations {
    fn new() -> Self {
        Self(vec![(0, 0); GENERATION_SLOTS])
    }

    fn clear(&mut self) {
        self.0.fill((0, 0));
    }

    /// Returns the last generation of the place, and puts `next` in its stead. `next` gets the last generation.
    #[inline]
    fn replace(&mut self, place: u64, next: impl FnOnce(u64) -> u64) -> (u64, u64) {
        let slot = &mut self.0[place as usize % GENERATION_SLOTS];
        let last = if slot.0 == place { slot.1 } else { 0 };
        let next = next(last);
        *slot = (place, next);
        (last, next)
    }
}

impl NewIds {
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.generations.clear();
    }
}

/// The ids that a writer has written.
pub(super) struct IdWriter {
    slots: Vec<WrittenId>,
    generations: Generations,
    new_ids: u64,
}

#[derive(Clone, Copy, Default)]
struct WrittenId {
    id: u64,
    /// The number of new ids up to this one.
    number: u64,
    word: u64,
}

impl IdWriter {
    pub fn new() -> Self {
        Self { slots: vec![WrittenId::default(); SLOTS], generations: Generations::new(), new_ids: 0 }
    }

    /// Forgets all ids.
    pub(super) fn clear(&mut self) {
        self.slots.fill(WrittenId::default());
        self.generations.clear();
        self.new_ids = 0;
    }

    /// Returns the code of `id`. If the id is not remembered, adds it to `new_ids`.
    #[inline]
    pub(super) fn code(&mut self, id: u64, new_ids: &mut NewIds) -> u8 {
        if id == 0 {
            return NONE;
        }
        let slot = &mut self.slots[slot_of(id)];
        let later = self.new_ids - slot.number;
        // Another id may have taken the slot. Then this id counts as new, though the reader still remembers it. That
        // costs a few bytes and does no harm.
        if slot.id == id && later < REMEMBERED {
            return later as u8 + 1;
        }
        self.new_ids += 1;
        *slot = WrittenId { id, number: self.new_ids, word: 0 };
        let (place, generation) = (id & ((1 << PLACE_BITS) - 1), id >> PLACE_BITS);
        let (last, _) = self.generations.replace(place, |_| generation);
        new_ids.places.push(place);
        new_ids.generations.push(generation.wrapping_sub(last));
        NEW
    }

    /// Returns the word that goes with `id`: the first one that was passed for it since the id was new, or 0. `id` was
    /// just coded.
    #[inline]
    pub(super) fn word_of(&mut self, id: u64, word: u64) -> u64 {
        if id == 0 {
            return 0;
        }
        let known = &mut self.slots[slot_of(id)].word;
        let predicted = *known;
        if predicted == 0 {
            *known = word;
        }
        predicted
    }
}

#[inline]
fn slot_of(id: u64) -> usize {
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize
}

/// The ids that a reader has read.
pub(super) struct IdReader<'n> {
    new_ids: &'n NewIds,
    generations: Generations,
    /// The newest ids, each with the word that goes with it.
    recent: [(u64, u64); REMEMBERED as usize],
    taken: usize,
}

impl<'n> IdReader<'n> {
    pub(super) fn new(new_ids: &'n NewIds) -> Self {
        Self { new_ids, generations: Generations::new(), recent: [(0, 0); REMEMBERED as usize], taken: 0 }
    }

    /// Returns the id of a code. Returns `None` if the code is that of an id that was never written.
    #[inline]
    pub(super) fn id(&mut self, code: u8) -> Option<u64> {
        match code {
            NONE => Some(0),
            NEW => {
                let place = *self.new_ids.places.get(self.taken)?;
                let difference = *self.new_ids.generations.get(self.taken)?;
                let (_, generation) = self.generations.replace(place, |last| last.wrapping_add(difference));
                let id = generation << PLACE_BITS | place;
                self.recent[self.taken % REMEMBERED as usize] = (id, 0);
                self.taken += 1;
                Some(id)
            }
            code => Some(self.recent[self.recent_of(code)?].0),
        }
    }

    /// Returns the word that goes with the id of `code`, which was just read. `rest` is the word of this event less the
    /// result; it is the whole word if the result is 0.
    #[inline]
    pub(super) fn word_of(&mut self, code: u8, rest: u64) -> u64 {
        let code = match code {
            NONE => return 0,
            // A new id is the newest one.
            NEW => 1,
            code => code,
        };
        let Some(index) = self.recent_of(code) else { return 0 };
        let known = &mut self.recent[index].1;
        let predicted = *known;
        if predicted == 0 {
            *known = rest;
        }
        predicted
    }

    #[inline]
    fn recent_of(&self, code: u8) -> Option<usize> {
        Some(self.taken.checked_sub(usize::from(code))? % REMEMBERED as usize)
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
        let (mut writer, mut new_ids) = (IdWriter::new(), NewIds::default());
        let ids = [7, 7, 0, 9, 7, 1 << PLACE_BITS | 7];
        let codes: Vec<u8> = ids.iter().map(|id| writer.code(*id, &mut new_ids)).collect();
        assert_eq!(codes, [NEW, 1, NONE, NEW, 2, NEW]);
        assert_eq!((&new_ids.places[..], &new_ids.generations[..]), (&[7, 9, 7][..], &[0, 0, 1][..]));
        let mut reader = IdReader::new(&new_ids);
        assert_eq!(reader.id(1), None);
        assert_eq!(codes.iter().map(|code| reader.id(*code).unwrap()).collect::<Vec<_>>(), ids);
        assert_eq!((reader.id(NEW), reader.id(4)), (None, None));
    }

    proptest! {
        #[test]
        fn any_ids_come_back_with_their_words(
            events in prop::collection::vec((prop_oneof![0_u64..600, any::<u64>()], 0_u64..3), 0..3000),
        ) {
            let (mut writer, mut new_ids) = (IdWriter::new(), NewIds::default());
            let coded: Vec<(u8, u64)> = events
                .iter()
                .map(|(id, word)| {
                    let code = writer.code(*id, &mut new_ids);
                    (code, word ^ writer.word_of(*id, *word))
                })
                .collect();
            let mut reader = IdReader::new(&new_ids);
            let back: Vec<(u64, u64)> = coded
                .iter()
                .map(|(code, rest)| {
                    let id = reader.id(*code).unwrap();
                    (id, rest ^ reader.word_of(*code, *rest))
                })
                .collect();
            prop_assert_eq!(back, events);
            let codes: Vec<u8> = coded.iter().map(|(code, _)| *code).collect();
            prop_assert_eq!(IdReader::count_new(&codes), new_ids.places.len());
        }
    }
}
