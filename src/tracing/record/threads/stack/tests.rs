//! Tests of the span stack.

use super::*;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::thread;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Enter(usize, usize),
    Exit(usize, usize),
    /// Closes a span, even if the thread is in it. Another span takes its number.
    Close(usize, usize),
}

const SPANS: usize = 40;

/// Two see each other's entries.
const OWNERS: [u32; 3] = [1, 2 | OF_PERF, SCOPES];

fn sees(owner: u32, other: u32) -> bool {
    owner == other || owner & other & OF_PERF != 0
}

fn step() -> impl Strategy<Value = Step> {
    let span = (0..SPANS, 0..OWNERS.len());
    prop_oneof![
        4 => span.clone().prop_map(|(number, owner)| Step::Enter(number, owner)),
        2 => span.clone().prop_map(|(number, owner)| Step::Exit(number, owner)),
        1 => span.prop_map(|(number, owner)| Step::Close(number, owner)),
    ]
}

fn new_span() -> u64 {
    end_of_thread::register();
    thread::with(|thread| SPAN_SLAB.create::<false>(&thread.free_list, 1)).unwrap()
}

fn close(span_id: u64) {
    thread::with(|thread| SPAN_SLAB.drop_handle(&thread.free_list, span_id));
}

/// The id by which an owner knows a span.
fn local_id(span_id: u64, owner: u32) -> u64 {
    if owner == SCOPES { scope_local_id(span_id) } else { span_id + 7 }
}

proptest! {
    #[test]
    fn it_does_what_a_plain_vector_does_however_deep(steps in prop::collection::vec(step(), 0..600)) {
        std::thread::spawn(move || {
            let stack = SpanStack::new();
            let mut spans = OWNERS.map(|_| [(); SPANS].map(|()| new_span()));
            // The ids, owners, and whether the entry is a duplicate. Nothing is ever removed but by an exit.
            let mut model: Vec<(u64, u32, bool)> = Vec::new();
            for step in steps {
                match step {
                    Step::Enter(number, owner) => {
                        let (id, owner) = (spans[owner][number], OWNERS[owner]);
                        let is_duplicate = model.iter().any(|entry| entry.0 == id);
                        model.push((id, owner, is_duplicate));
                        if !stack.try_push(id, local_id(id, owner), 0, owner) {
                            assert_eq!(stack.push(id, local_id(id, owner), 0, owner, true), !is_duplicate);
                        }
                    }
                    Step::Exit(number, owner) => {
                        let (id, owner) = (spans[owner][number], OWNERS[owner]);
                        let at = model.iter().rposition(|entry| entry.0 == id);
                        let expected = at.map(|at| model.remove(at).0);
                        let popped = match stack.try_pop(local_id(id, owner), owner) {
                            Some(popped) => {
                                assert_eq!(popped.current_span_id, stack.current_span_id());
                                Some(popped.entry)
                            }
                            None => stack.pop(local_id(id, owner), owner),
                        };
                        assert_eq!(popped.map(|entry| entry.span_id), expected);
                    }
                    Step::Close(number, owner) => {
                        let id = &mut spans[owner][number];
                        close(*id);
                        *id = new_span();
                    }
                }
                for owner in OWNERS {
                    let innermost = model.iter().rev().find(|entry| sees(owner, entry.1) && !entry.2);
                    let expected = innermost.map(|entry| entry.0).filter(|id| SPAN_SLAB.is_open(*id));
                    assert_eq!(stack.current(owner).map(|entry| entry.span_id), expected);
                    let current = stack.try_current(owner);
                    assert!(current.is_none_or(|id| id == expected.unwrap_or(0)));
                    assert_eq!(stack.current_of(owner), expected.unwrap_or(0));
                }
            }
            spans.iter().flatten().for_each(|id| close(*id));
        }).join().unwrap();
    }
}

#[test]
fn spans_that_close_while_a_thread_is_in_them_take_no_room() {
    for depth in [0, 1, 5, 100] {
        std::thread::spawn(move || {
            let stack = SpanStack::new();
            let outer: Vec<u64> = (0..depth).map(|_| new_span()).collect();
            outer.iter().for_each(|id| assert!(stack.push(*id, *id, 0, 1, true)));
            // Two spans are open at a time, so that a closed span is never the last entry.
            let mut before = new_span();
            stack.push(before, before, 0, 1, true);
            for _ in 0..10_000 {
                let id = new_span();
                stack.push(id, id, 0, 1, true);
                close(before);
                before = id;
                assert!(stack.len.get() <= INLINE.max(2 * depth + 4), "{}", stack.len.get());
            }
            assert_eq!(stack.current_of(1), before);
            close(before);
            // The spans outside are hidden, as in a `Registry`, whatever the thread exits.
            assert_eq!((stack.current_of(1), stack.current_span_id()), (0, 0));
            for id in outer.iter().rev() {
                assert_eq!(stack.pop(*id, 1).map(|entry| entry.span_id), Some(*id));
                assert_eq!((stack.current_of(1), stack.current_span_id()), (0, 0));
            }
            let id = new_span();
            assert!(stack.try_push(id, id, 0, 1));
            assert_eq!(stack.current_of(1), id);
        })
        .join()
        .unwrap();
    }
}

#[test]
fn a_thread_may_be_in_a_thousand_spans() {
    std::thread::spawn(|| {
        let stack = SpanStack::new();
        let ids: Vec<u64> = (0..1000).map(|_| new_span()).collect();
        ids.iter().for_each(|id| assert!(stack.push(*id, *id, 0, 1, true)));
        assert_eq!(stack.current_of(1), ids[999]);
        for id in ids {
            assert_eq!(stack.pop(id, 1).map(|entry| entry.span_id), Some(id));
        }
        assert_eq!(stack.len.get(), 0);
    })
    .join()
    .unwrap();
}
