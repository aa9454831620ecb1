//! What a `RecorderSubscriber` keeps of an open span: how many handles it has, and its call site. 16 bytes.
//!
//! A subscriber must say when a span's last handle is gone, hence the count; and `Span::current()` asks for the metadata of a
//! span of which only the id is known, hence the call site. A span's id names its cell (low [`INDEX_BITS`] bits) and counts how
//! often that cell was used (the bits above), so that no id is ever used twice; a cell whose count is used up is put away for
//! good. Ids have [`ID_BITS`] bits: those of `RecorderLayer` have the bit above set, and a number with a fraction (`f64`), which is what JSON
//! is read into, holds both kinds.
//!
//! Cells that are free belong to threads, which create and close spans without any locked instruction. What a thread has too
//! many of it gives to a common stock, and takes from it when it has none, in chains of [`CHAIN`] cells.

use crate::global::Leaked;
use crate::sync::{AtomicU64, Ordering};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// Bits of a cell's index: nearly 2^24 spans can be open at a time, in 256 MiB.
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// Bits of an id.
pub(super) const ID_BITS: u32 = 52;
/// The generation of a cell counts up to here: 2^28 uses, half a minute of a thread that does nothing but make spans.
const GENERATION_MAX: u64 = if cfg!(test) { 1000 } else { (1 << (ID_BITS - INDEX_BITS)) - 1 };
/// The last id of a cell is greater than this, and no other one is. (No cell has the index [`NONE`]. A bound that ends in zeros would be compared by
/// one instruction more.)
const BELOW_LAST_IDS: u64 = (GENERATION_MAX << INDEX_BITS) - 2;
/// Cells of the first block; each further block is twice as large as the one before.
const FIRST_BLOCK: u64 = 1 << FIRST_BLOCK_SHIFT;
/// 1 MiB of addresses; in tests of this file, which have all cells on the stack, less.
const FIRST_BLOCK_SHIFT: u32 = if cfg!(test) { 12 } else { 16 };
/// Blocks behind the first.
const FURTHER_BLOCKS: usize = (INDEX_BITS - FIRST_BLOCK_SHIFT - 1) as usize;
/// Cells that change hands at once.
const CHAIN: u32 = 64;
/// Free cells that a thread keeps, at most.
const KEPT: usize = 2 * CHAIN as usize;
/// No cell.
const NONE: u64 = INDEX_MASK;

/// One cell.
struct SpanCell {
    /// The id of its span, or of its last one.
    id: AtomicU64,
    /// In use: the call site's id (high half), and handles (low half), never 0. Free: see [`link`].
    state: AtomicU64,
}

impl SpanCell {
    const fn new() -> Self {
        Self { id: AtomicU64::new(0), state: AtomicU64::new(0) }
    }
}

/// All cells of the process.
pub(super) struct SpanCells {
    /// A part of the program's zeroed memory, of which pages exist once they are used: found in few instructions. Most programs
    /// never need more.
    first: [SpanCell; FIRST_BLOCK as usize],
    further: [Leaked<Box<[SpanCell]>>; FURTHER_BLOCKS],
    /// Cells that were never used begin at this index.
    unused: AtomicU64,
    /// The first chain in stock, as [`in_stock`] has it, and a number that changes with it (high bits).
    stock: AtomicU64,
}

/// The cells of this process. They begin as zeros, without a byte in between that is none: so they are a part of the program's memory, and not
/// of its file.
pub(super) static SPAN_CELLS: SpanCells = SpanCells::new();

/// The free cells that a thread keeps.
#[repr(C)]
pub(super) struct FreeCells {
    len: Cell<u32>,
    indices: [Cell<u32>; KEPT],
    /// The thread is at its end: it keeps none any more.
    has_ended: Cell<bool>,
}

/// What became of a span when one of its handles was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dropped {
    /// There are others.
    Open,
    /// It was the last; the span's call site.
    Last(u32),
    /// There is no such span.
    Unknown,
}

/// The state of a free cell in a chain: the next cell of its chain and, in the first one of a chain, the next chain in stock.
fn link(next_cell: u64, next_chain: u64) -> u64 {
    next_chain << 32 | next_cell
}

/// How the stock has its first chain: by the first cell of that, so that 0 stands for none. And the other way round.
fn in_stock(cell: u64) -> u64 {
    cell & INDEX_MASK ^ NONE
}

impl SpanCells {
    const fn new() -> Self {
        Self {
            first: [const { SpanCell::new() }; FIRST_BLOCK as usize],
            further: [const { Leaked::empty() }; FURTHER_BLOCKS],
            unused: AtomicU64::new(0),
            stock: AtomicU64::new(0),
        }
    }

    /// As [`Self::create`] if the thread has a free cell of the first block; otherwise `None`, and nothing has changed.
    #[inline(always)]
    pub(super) fn create_at_once(&self, free: &FreeCells, call_site_id: u32) -> Option<u64> {
        let (index, len) = free.last()?;
        let cell = self.first.get(index as usize)?;
        free.len.set(len);
        Some(cell.begin(index, call_site_id))
    }

    /// A cell for a new span with one handle; gives the span's id. `None` if as many spans are open as can be.
    #[inline(always)]
    pub(super) fn create(&self, free: &FreeCells, call_site_id: u32) -> Option<u64> {
        match self.create_at_once(free, call_site_id) {
            Some(id) => Some(id),
            None => self.create_otherwise(free, call_site_id),
        }
    }

    #[inline(never)]
    fn create_otherwise(&self, free: &FreeCells, call_site_id: u32) -> Option<u64> {
        let index = match free.pop() {
            Some(index) => index,
            None => self.refill(free)?,
        };
        free.give_all_if_ended(self);
        Some(self.cell(index)?.begin(index, call_site_id))
    }

    /// As [`Self::call_site_id`] for a cell of the first block; otherwise, or if there is no such span, `None`.
    #[inline(always)]
    pub(super) fn call_site_id_at_once(&self, id: u64) -> Option<u32> {
        self.first.get((id & INDEX_MASK) as usize)?.call_site_id_of(id)
    }

    /// The call site of an open span; 0 if there is no such span.
    #[inline(always)]
    pub(super) fn call_site_id(&self, id: u64) -> u32 {
        self.cell(id & INDEX_MASK).and_then(|cell| cell.call_site_id_of(id)).unwrap_or(0)
    }

    /// Another handle of an open span.
    #[inline]
    pub(super) fn add_handle(&self, id: u64) {
        if let Some(cell) = self.cell(id & INDEX_MASK)
            && cell.id.load(Ordering::Relaxed) == id
        {
            cell.state.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A handle is gone.
    #[inline(always)]
    pub(super) fn drop_handle(&self, free: &FreeCells, id: u64) -> Dropped {
        let index = id & INDEX_MASK;
        let Some(cell) = self.cell(index) else { return Dropped::Unknown };
        if cell.id.load(Ordering::Relaxed) != id {
            return Dropped::Unknown;
        }
        // Acquire: what the other handles' threads did is behind their release below.
        let mut state = cell.state.load(Ordering::Acquire);
        if state as u32 > 1 {
            // Others may be dropped at the same time: who takes the count to 0 was the last. With a count of 1 nobody else
            // can be there: a handle is made from a handle.
            state = cell.state.fetch_sub(1, Ordering::AcqRel);
        }
        match state as u32 {
            0 => Dropped::Unknown,
            1 => {
                cell.state.store(0, Ordering::Relaxed);
                if id <= BELOW_LAST_IDS {
                    self.put_back(free, index);
                }
                Dropped::Last((state >> 32) as u32)
            }
            _ => Dropped::Open,
        }
    }

    /// As [`Self::drop_handle`] for the only handle of a span whose cell is in the first block, if the thread has room for the
    /// cell: gives the span's call site. Otherwise `None`, and nothing has changed.
    #[inline(always)]
    pub(super) fn drop_only_handle_at_once(&self, free: &FreeCells, id: u64) -> Option<u32> {
        let index = id & INDEX_MASK;
        let cell = self.first.get(index as usize)?;
        if cell.id.load(Ordering::Relaxed) != id {
            return None;
        }
        // Acquire: as in `drop_handle`.
        let state = cell.state.load(Ordering::Acquire);
        if state as u32 != 1 || id > BELOW_LAST_IDS || !free.push(index) {
            return None;
        }
        cell.state.store(0, Ordering::Relaxed);
        Some((state >> 32) as u32)
    }

    #[inline(always)]
    fn cell(&self, index: u64) -> Option<&SpanCell> {
        self.first.get(index as usize).or_else(|| self.further_cell(index))
    }

    #[inline(never)]
    fn further_cell(&self, index: u64) -> Option<&SpanCell> {
        let (block, within) = place_of(index);
        self.further.get(block.checked_sub(1)?)?.get()?.get(within)
    }

    /// Cells for a thread that has none: from the stock, or new ones. One is given, the others are kept.
    #[cold]
    #[inline(never)]
    fn refill(&self, free: &FreeCells) -> Option<u64> {
        if let Some(first) = self.take_chain() {
            let mut next = self.cell(first)?.state.load(Ordering::Relaxed) & 0xffff_ffff;
            while next != NONE {
                free.push(next);
                next = self.cell(next)?.state.load(Ordering::Relaxed) & 0xffff_ffff;
            }
            return Some(first);
        }
        let first = self.unused.fetch_add(u64::from(CHAIN), Ordering::Relaxed);
        // There is no block behind the last one; so the index that stands for none is not used either.
        if first + u64::from(CHAIN) + FIRST_BLOCK > 1 << INDEX_BITS {
            self.unused.fetch_sub(u64::from(CHAIN), Ordering::Relaxed);
            return None;
        }
        // Chains do not run over the ends of blocks: both are powers of two.
        let (block, _) = place_of(first);
        if let Some(further) = block.checked_sub(1) {
            make_block(self.further.get(further)?, FIRST_BLOCK << block);
        }
        for more in 1..u64::from(CHAIN) {
            free.push(first + more);
        }
        Some(first)
    }

    /// Keeps a cell that has become free; gives a chain away if there are too many.
    #[inline(always)]
    fn put_back(&self, free: &FreeCells, index: u64) {
        if !free.push(index) {
            self.give_chain(free);
            free.push(index);
        }
        free.give_all_if_ended(self);
    }

    /// Gives half of a thread's free cells to the stock.
    #[cold]
    #[inline(never)]
    fn give_chain(&self, free: &FreeCells) {
        let mut next = NONE;
        for _ in 0..CHAIN {
            let Some(index) = free.pop() else { break };
            if let Some(cell) = self.cell(index) {
                cell.state.store(link(next, NONE), Ordering::Relaxed);
                next = index;
            }
        }
        let Some(cell) = self.cell(next) else { return };
        let chained = cell.state.load(Ordering::Relaxed) & 0xffff_ffff;
        let mut stock = self.stock.load(Ordering::Relaxed);
        loop {
            cell.state.store(link(chained, in_stock(stock)), Ordering::Relaxed);
            let new = ((stock >> INDEX_BITS) + 1) << INDEX_BITS | in_stock(next);
            // Release: who takes the chain has its links, and what was done with its cells.
            match self.stock.compare_exchange_weak(stock, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => stock = now,
            }
        }
    }

    /// Takes a chain from the stock; gives its first cell.
    fn take_chain(&self) -> Option<u64> {
        let mut stock = self.stock.load(Ordering::Acquire);
        loop {
            let first = in_stock(stock);
            if first == NONE {
                return None;
            }
            // Another thread may have taken the chain meanwhile and this may be anything: then the number in the stock has
            // changed, and the exchange fails.
            let next = self.cell(first)?.state.load(Ordering::Relaxed) >> 32;
            let new = ((stock >> INDEX_BITS) + 1) << INDEX_BITS | in_stock(next);
            match self.stock.compare_exchange_weak(stock, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(first),
                Err(now) => stock = now,
            }
        }
    }
}

impl SpanCell {
    /// The call site of the span with that id, if this is its cell.
    #[inline(always)]
    fn call_site_id_of(&self, id: u64) -> Option<u32> {
        (self.id.load(Ordering::Relaxed) == id).then(|| (self.state.load(Ordering::Relaxed) >> 32) as u32)
    }

    /// A span begins in this free cell, which has that index. Gives the span's id.
    #[inline(always)]
    fn begin(&self, index: u64, call_site_id: u32) -> u64 {
        // Relaxed, here and where nothing else is said: a cell is handed from thread to thread with the handles of its span,
        // or through the stock, which order everything.
        let id = self.id.load(Ordering::Relaxed).wrapping_add(1 << INDEX_BITS) & !INDEX_MASK | index;
        self.id.store(id, Ordering::Relaxed);
        self.state.store(u64::from(call_site_id) << 32 | 1, Ordering::Relaxed);
        id
    }
}

/// Makes a block of cells, unless it is there.
fn make_block(block: &Leaked<Box<[SpanCell]>>, cells: u64) {
    // Of threads that come at once, one makes it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if block.get().is_none() {
        block.set((0..cells).map(|_| SpanCell::new()).collect());
    }
}

/// The block of the cell with that index, and its place in there.
fn place_of(index: u64) -> (usize, usize) {
    let position = index + FIRST_BLOCK;
    let block = position.ilog2() - FIRST_BLOCK.ilog2();
    // Block 0 begins at position FIRST_BLOCK, block n at FIRST_BLOCK << n.
    (block as usize, (position - (FIRST_BLOCK << block)) as usize)
}

impl FreeCells {
    pub(super) const fn new() -> Self {
        Self { indices: [const { Cell::new(0) }; KEPT], len: Cell::new(0), has_ended: Cell::new(false) }
    }

    /// The index of the last cell, and how many there are without it.
    #[inline(always)]
    fn last(&self) -> Option<(u64, u32)> {
        let len = self.len.get().checked_sub(1)?;
        self.indices.get(len as usize).map(|index| (index.get().into(), len))
    }

    #[inline(always)]
    fn pop(&self) -> Option<u64> {
        let (index, len) = self.last()?;
        self.len.set(len);
        Some(index)
    }

    /// False if there is no room.
    #[inline(always)]
    fn push(&self, index: u64) -> bool {
        let len = self.len.get();
        let Some(place) = self.indices.get(len as usize) else { return false };
        // Indices have 24 bits.
        place.set(index as u32);
        self.len.set(len + 1);
        true
    }

    /// Gives everything to the stock, at the thread's end. What other destructors of the thread still take and put back does not stay either.
    pub(super) fn give_up(&self, cells: &SpanCells) {
        self.has_ended.set(true);
        self.give_all_if_ended(cells);
    }

    /// Whether the thread is at its end.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    fn give_all_if_ended(&self, cells: &SpanCells) {
        if !self.has_ended.get() {
            return;
        }
        while self.len.get() > 0 {
            cells.give_chain(self);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::Mutex;

    fn cells() -> SpanCells {
        SpanCells::new()
    }

    #[test]
    fn a_span_is_closed_by_its_last_handle_and_its_id_is_not_used_again() {
        let (cells, free) = (cells(), FreeCells::new());
        let id = cells.create(&free, 7).unwrap();
        cells.add_handle(id);
        assert_eq!(cells.call_site_id(id), 7);
        assert_eq!(cells.drop_handle(&free, id), Dropped::Open);
        assert_eq!(cells.drop_handle(&free, id), Dropped::Last(7));
        assert_eq!(cells.drop_handle(&free, id), Dropped::Unknown);
        let other = cells.create(&free, 8).unwrap();
        assert_eq!(other & INDEX_MASK, id & INDEX_MASK);
        assert_ne!(other, id);
        assert_eq!((cells.call_site_id(id), cells.call_site_id(other)), (0, 8));
        assert_eq!(cells.drop_handle(&free, id), Dropped::Unknown);
        assert_eq!(cells.drop_handle(&free, u64::MAX), Dropped::Unknown);
    }

    #[test]
    fn a_cell_whose_generations_are_used_up_is_put_away_for_good_and_no_id_comes_again() {
        let (cells, free) = (cells(), FreeCells::new());
        let mut ids = HashSet::new();
        // More than three chains have, for either way of closing.
        for n in 0..3 * u64::from(CHAIN) * GENERATION_MAX + 7 {
            let id = cells.create(&free, 1).unwrap();
            assert!(ids.insert(id), "{id:#x} again");
            if n % 2 == 0 || cells.drop_only_handle_at_once(&free, id).is_none() {
                assert_eq!(cells.drop_handle(&free, id), Dropped::Last(1));
            }
        }
        assert_eq!(ids.iter().map(|id| id >> INDEX_BITS).max(), Some(GENERATION_MAX));
        assert_eq!(cells.unused.load(Ordering::Relaxed), 4 * u64::from(CHAIN));
    }

    #[test]
    fn the_last_id_of_the_last_cell_has_52_bits() {
        let cell = SpanCell::new();
        let generation_max = (1 << (ID_BITS - INDEX_BITS)) - 1;
        cell.id.store((generation_max - 1) << INDEX_BITS | (NONE - 1), Ordering::Relaxed);
        assert_eq!(cell.begin(NONE - 1, 1), (1 << ID_BITS) - 2);
    }

    #[test]
    fn a_thread_at_its_end_keeps_no_cell_of_the_spans_that_it_still_makes() {
        let cells = cells();
        for _ in 0..1000 {
            let free = FreeCells::new();
            cells.create(&free, 1).map(|id| cells.drop_handle(&free, id)).unwrap();
            free.give_up(&cells);
            let late = cells.create(&free, 2).unwrap();
            assert_eq!(cells.drop_handle(&free, late), Dropped::Last(2));
            assert_eq!(free.len.get(), 0);
        }
        assert!(cells.unused.load(Ordering::Relaxed) <= 2 * u64::from(CHAIN));
    }

    #[test]
    fn when_every_cell_is_in_use_no_span_is_made_until_one_is_closed() {
        let (cells, free) = (cells(), FreeCells::new());
        // As if all but the last chain of the last block were in use.
        cells.unused.store((1 << INDEX_BITS) - FIRST_BLOCK - u64::from(CHAIN), Ordering::Relaxed);
        let last: Vec<u64> = (0..CHAIN).map(|_| cells.create(&free, 1).unwrap()).collect();
        assert!(last.iter().all(|id| id & INDEX_MASK != NONE));
        for _ in 0..3 {
            assert_eq!(cells.create(&free, 1), None);
        }
        assert_eq!(cells.drop_handle(&free, last[7]), Dropped::Last(1));
        assert_eq!(cells.create(&free, 2).map(|id| id & INDEX_MASK), Some(last[7] & INDEX_MASK));
        assert_eq!(cells.create(&free, 1), None);
    }

    #[test]
    fn a_hundred_thousand_open_spans_have_different_cells_and_closing_them_frees_them() {
        let (cells, free) = (cells(), FreeCells::new());
        for _ in 0..3 {
            let ids: Vec<u64> = (0..100_000).map(|_| cells.create(&free, 1).unwrap()).collect();
            assert_eq!(ids.iter().map(|id| id & INDEX_MASK).collect::<HashSet<_>>().len(), ids.len());
            assert!(ids.iter().all(|id| cells.drop_handle(&free, *id) == Dropped::Last(1)));
        }
        assert!(cells.unused.load(Ordering::Relaxed) < 100_000 + 2 * u64::from(CHAIN));
    }

    #[test]
    fn cells_go_from_thread_to_thread_and_no_two_spans_have_one_at_a_time() {
        let cells = cells();
        let handed_over: Mutex<Vec<u64>> = Mutex::new(Vec::new());
        let all_ids = Mutex::new(HashSet::<u64>::new());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (cells, handed_over, all_ids) = (&cells, &handed_over, &all_ids);
                scope.spawn(move || {
                    let free = FreeCells::new();
                    let mut created: Vec<u64> = Vec::new();
                    for round in 0..200 {
                        let open: Vec<u64> = (0..150).map(|_| cells.create(&free, thread).unwrap()).collect();
                        created.extend(&open);
                        open.iter().for_each(|id| assert_eq!(cells.call_site_id(*id), thread));
                        let mut handed_over = handed_over.lock().unwrap();
                        handed_over.extend(open);
                        if round % 3 == 0 {
                            let others: Vec<u64> = handed_over.drain(..).collect();
                            drop(handed_over);
                            for id in others {
                                assert!(matches!(cells.drop_handle(&free, id), Dropped::Last(_)));
                            }
                        }
                    }
                    free.give_up(cells);
                    all_ids.lock().unwrap().extend(created);
                });
            }
        });
        assert_eq!(all_ids.lock().unwrap().len(), 4 * 200 * 150);
    }
}
