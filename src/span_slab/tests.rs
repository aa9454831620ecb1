//! Tests of the span slab.

use super::cell::SpanCell;
use super::free_list::CHAIN;
use super::id::{GENERATION_MAX, ID_BITS, NO_CELL};
use super::*;
use std::collections::HashSet;
use std::sync::Mutex;

fn slab() -> SpanSlab {
    SpanSlab::new()
}

#[test]
fn nobody_gets_the_cell_of_a_span_before_its_end_was_told() {
    let slab = SpanSlab::new();
    let (free, other) = (FreeList::new(), FreeList::new());
    let first = |id: u64| id & INDEX_MASK;
    for way in 0..3 {
        let id = slab.create::<false>(&free, 7).unwrap();
        let told = std::cell::Cell::new(0);
        // Another thread, and code that interrupts this one.
        let ended = || {
            let others = [&other, &free].map(|list| slab.create::<false>(list, 8).unwrap());
            assert!(others.iter().all(|other| first(*other) != first(id)), "{way}");
            others.iter().for_each(|other| assert_eq!(slab.drop_handle(&free, *other), Dropped::Last(8)));
            told.set(told.get() + 1);
        };
        match way {
            0 => assert_eq!(slab.drop_handle_and(&free, id, ended), Dropped::Last(7)),
            1 => assert_eq!(slab.try_drop_only_handle(&free, id, ended), Some(7)),
            _ => assert!(slab.try_close_of_layer(&free, id, ended)),
        }
        assert_eq!((told.get(), slab.is_open(id)), (1, false), "{way}");
    }
}

#[test]
fn a_span_is_closed_by_its_last_handle_and_its_id_is_not_used_again() {
    let (slab, free) = (slab(), FreeList::new());
    let id = slab.create::<false>(&free, 7).unwrap();
    slab.add_handle(id);
    assert_eq!(slab.call_site_id(id), 7);
    assert_eq!(slab.drop_handle(&free, id), Dropped::Open);
    assert_eq!(slab.drop_handle(&free, id), Dropped::Last(7));
    assert_eq!(slab.drop_handle(&free, id), Dropped::Unknown);
    let other = slab.create::<false>(&free, 8).unwrap();
    assert_eq!(other & INDEX_MASK, id & INDEX_MASK);
    assert_ne!(other, id);
    assert_eq!((slab.call_site_id(id), slab.call_site_id(other)), (0, 8));
    assert_eq!(slab.drop_handle(&free, id), Dropped::Unknown);
    assert_eq!(slab.drop_handle(&free, u64::MAX), Dropped::Unknown);
}

#[test]
fn a_closed_span_gets_no_handle_and_is_not_opened_again() {
    let (slab, free) = (slab(), FreeList::new());
    for id in [slab.create::<false>(&free, 7).unwrap(), slab.create::<true>(&free, 7).unwrap()] {
        assert!(slab.is_open(id) && slab.try_is_open(id));
        assert_eq!(slab.drop_handle(&free, id), Dropped::Last(7));
        slab.add_handle(id);
        assert!(!slab.is_open(id) && !slab.try_is_open(id));
        assert_eq!(slab.drop_handle(&free, id), Dropped::Unknown);
    }
    let [first, second] = [(); 2].map(|()| slab.create::<false>(&free, 8).unwrap());
    assert_ne!(first & INDEX_MASK, second & INDEX_MASK, "each cell is free once");
}

#[test]
fn ids_of_layers_have_a_bit_of_their_own_and_a_double_holds_them() {
    let (slab, free) = (slab(), FreeList::new());
    let mut ids = HashSet::new();
    for _ in 0..2 * u64::from(CHAIN) * GENERATION_MAX {
        let id = slab.create::<true>(&free, 1).unwrap();
        assert!(ids.insert(id) && id & LAYER_BIT != 0 && id as f64 as u64 == id, "{id:#x}");
        assert_eq!(slab.drop_handle(&free, id), Dropped::Last(1));
    }
    slab.for_each_open(|id, _| panic!("{id:#x} is open"));
    slab.create::<true>(&free, 1).unwrap();
    slab.for_each_open(|id, _| panic!("{id:#x} is of a layer"));
    assert_eq!((2 * LAYER_BIT - 1) as f64 as u64, 2 * LAYER_BIT - 1);
}

#[test]
fn a_cell_whose_generations_are_used_up_is_not_used_again_and_no_id_comes_twice() {
    let (slab, free) = (slab(), FreeList::new());
    let mut ids = HashSet::new();
    // Three chains have `3 * CHAIN` cells, and each cell has `GENERATION_MAX` ids. The loop makes more spans than that.
    // It closes every second span with `try_drop_only_handle`, and the others with `drop_handle`. If
    // `try_drop_only_handle` refuses the last generation of a cell, `drop_handle` closes the span.
    for n in 0..3 * u64::from(CHAIN) * GENERATION_MAX + 7 {
        let id = slab.create::<false>(&free, 1).unwrap();
        assert!(ids.insert(id), "{id:#x} again");
        if n % 2 == 0 || slab.try_drop_only_handle(&free, id, || ()).is_none() {
            assert_eq!(slab.drop_handle(&free, id), Dropped::Last(1));
        }
    }
    assert_eq!(ids.iter().map(|id| id >> INDEX_BITS).max(), Some(GENERATION_MAX));
    assert_eq!(slab.unused.load(Ordering::Relaxed), 4 * u64::from(CHAIN));
}

#[test]
fn the_last_id_of_the_last_cell_has_52_bits() {
    let cell = SpanCell::new();
    let generation_max = (1 << (ID_BITS - INDEX_BITS)) - 1;
    cell.id.store((generation_max - 1) << INDEX_BITS | (NO_CELL - 1), Ordering::Relaxed);
    assert_eq!(cell.begin::<false>(NO_CELL - 1, 1), (1 << ID_BITS) - 2);
}

#[test]
fn a_thread_at_its_end_keeps_no_cell_of_the_spans_that_it_still_makes() {
    let slab = slab();
    for _ in 0..1000 {
        let free = FreeList::new();
        slab.create::<false>(&free, 1).map(|id| slab.drop_handle(&free, id)).unwrap();
        free.end(&slab);
        let late = slab.create::<false>(&free, 2).unwrap();
        assert_eq!(slab.drop_handle(&free, late), Dropped::Last(2));
        assert_eq!(free.len.get(), 0);
    }
    assert!(slab.unused.load(Ordering::Relaxed) <= 2 * u64::from(CHAIN));
}

#[test]
fn when_every_cell_is_in_use_no_span_is_made_until_one_is_closed() {
    let (slab, free) = (slab(), FreeList::new());
    // Makes the slab look as if all cells were in use, except for the last chain of the last block.
    slab.unused.store(FIRST_CELLS + FurtherCells::LEN_MAX as u64 - u64::from(CHAIN), Ordering::Relaxed);
    let last: Vec<u64> = (0..CHAIN).map(|_| slab.create::<false>(&free, 1).unwrap()).collect();
    assert!(last.iter().all(|id| id & INDEX_MASK != NO_CELL));
    for _ in 0..3 {
        assert_eq!(slab.create::<false>(&free, 1), None);
    }
    assert_eq!(slab.drop_handle(&free, last[7]), Dropped::Last(1));
    assert_eq!(slab.create::<false>(&free, 2).map(|id| id & INDEX_MASK), Some(last[7] & INDEX_MASK));
    assert_eq!(slab.create::<false>(&free, 1), None);
}

#[test]
fn a_hundred_thousand_open_spans_have_different_cells_and_closing_them_frees_them() {
    let (slab, free) = (slab(), FreeList::new());
    for _ in 0..3 {
        let ids: Vec<u64> = (0..100_000).map(|_| slab.create::<false>(&free, 1).unwrap()).collect();
        assert_eq!(ids.iter().map(|id| id & INDEX_MASK).collect::<HashSet<_>>().len(), ids.len());
        assert!(ids.iter().all(|id| slab.drop_handle(&free, *id) == Dropped::Last(1)));
    }
    assert!(slab.unused.load(Ordering::Relaxed) < 100_000 + 2 * u64::from(CHAIN));
}

#[test]
fn cells_go_from_thread_to_thread_and_no_two_spans_have_one_at_a_time() {
    let slab = slab();
    let handed_over: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let all_ids = Mutex::new(HashSet::<u64>::new());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (slab, handed_over, all_ids) = (&slab, &handed_over, &all_ids);
            scope.spawn(move || {
                let free = FreeList::new();
                let mut created: Vec<u64> = Vec::new();
                for round in 0..200 {
                    let open: Vec<u64> = (0..150).map(|_| slab.create::<false>(&free, thread).unwrap()).collect();
                    created.extend(&open);
                    open.iter().for_each(|id| assert_eq!(slab.call_site_id(*id), thread));
                    let mut handed_over = handed_over.lock().unwrap();
                    handed_over.extend(open);
                    if round % 3 == 0 {
                        let others: Vec<u64> = handed_over.drain(..).collect();
                        drop(handed_over);
                        for id in others {
                            assert!(matches!(slab.drop_handle(&free, id), Dropped::Last(_)));
                        }
                    }
                }
                free.end(slab);
                all_ids.lock().unwrap().extend(created);
            });
        }
    });
    assert_eq!(all_ids.lock().unwrap().len(), 4 * 200 * 150);
}
