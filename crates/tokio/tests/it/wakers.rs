//! Wakers: those that outlive their task, that wake during a poll, and that are lost.

use crate::ring::record;
use eventring_tokio::Task;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts its wakes.
#[derive(Default)]
struct Outer(AtomicU32);

impl Wake for Outer {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn outer() -> (Arc<Outer>, Waker) {
    let outer = Arc::new(Outer::default());
    (outer.clone(), Waker::from(outer))
}

fn wakes(outer: &Outer) -> u32 {
    outer.0.swap(0, Ordering::Relaxed)
}

#[test]
fn a_wake_is_forwarded_once_for_each_poll_also_during_it_and_never_after_the_end() {
    let recorded = record(false, || {
        let (count, waker) = outer();
        let mut kept = Vec::new();
        let mut polls = 0;
        {
            let mut task = pin!(Task::new(
                "polled by hand",
                poll_fn(|context| {
                    polls += 1;
                    kept.push(context.waker().clone());
                    if polls == 2 {
                        context.waker().wake_by_ref();
                    }
                    if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
                })
            ));
            let mut context = Context::from_waker(&waker);
            assert!(task.as_mut().poll(&mut context).is_pending());
            assert_eq!(wakes(&count), 0);
            assert!(task.as_mut().poll(&mut context).is_pending());
            assert_eq!(wakes(&count), 1, "during the poll");
            assert!(task.as_mut().poll(&mut context).is_ready());
        }
        assert!(kept[0].will_wake(&kept[0]));
        kept.into_iter().for_each(Waker::wake);
        assert_eq!(wakes(&count), 0, "the task is over");
    });
    let task = recorded.task("polled by hand");
    assert_eq!((recorded.count(task, "woken"), recorded.count(task, "unwakeable")), (1, 0));
    assert_eq!(task.slices.len(), 3);
}

/// Makes a task that waits for ever and puts a clone of the waker of each poll into `kept`.
fn keeps<'k>(name: &str, kept: &'k RefCell<Vec<Waker>>) -> Pin<Box<impl Future<Output = ()> + use<'k>>> {
    Box::pin(Task::new(
        name,
        poll_fn(move |context| {
            kept.borrow_mut().push(context.waker().clone());
            Poll::Pending
        }),
    ))
}

#[test]
fn the_waker_of_the_last_poll_is_woken_by_clones_of_earlier_polls() {
    let (first, first_waker) = outer();
    let (second, second_waker) = outer();
    record(false, || {
        let kept = RefCell::new(Vec::new());
        let mut task = keeps("moves", &kept);
        assert!(task.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
        assert!(task.as_mut().poll(&mut Context::from_waker(&second_waker)).is_pending());
        // A future that looks whether it is still the same waker need not register again.
        assert!(kept.borrow()[0].will_wake(&kept.borrow()[1]));
        kept.borrow_mut().remove(0).wake();
        assert_eq!((wakes(&first), wakes(&second)), (0, 1));
        assert!(task.as_mut().poll(&mut Context::from_waker(&first_waker)).is_pending());
        kept.borrow_mut().remove(0).wake();
        assert_eq!((wakes(&first), wakes(&second)), (1, 0));
    });
}

#[test]
fn a_task_that_nobody_can_wake_says_so_when_the_last_clone_is_gone() {
    let recorded = record(false, || {
        let (_, waker) = outer();
        let context = &mut Context::from_waker(&waker);
        let kept = RefCell::new(Vec::new());
        let mut lost = keeps("lost", &kept);
        assert!(lost.as_mut().poll(context).is_pending());
        assert!(lost.as_mut().poll(context).is_pending());
        let later = kept.borrow_mut().pop();
        kept.borrow_mut().clear();
        std::thread::spawn(|| drop(later)).join().unwrap();

        let mut at_once = Box::pin(Task::new("at once", std::future::pending::<()>()));
        assert!(at_once.as_mut().poll(context).is_pending());
        // It was woken, so the last clone may go.
        let mut woken = keeps("woken", &kept);
        assert!(woken.as_mut().poll(context).is_pending());
        kept.take().into_iter().for_each(Waker::wake);
        assert!(woken.as_mut().poll(context).is_pending());
        drop(woken);
        // It is over, so nobody need wake it.
        kept.take();
    });
    for (name, count) in [("lost", 1), ("at once", 1), ("woken", 0)] {
        assert_eq!(recorded.count(recorded.task(name), "unwakeable"), count, "{name}");
    }
}
