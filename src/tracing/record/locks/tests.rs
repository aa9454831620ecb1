use super::*;
use std::sync::{Arc, TryLockError};
use std::time::Duration;

#[test]
fn a_lock_is_as_poisoned_as_that_of_std() {
    let lock = Arc::new(Mutex::new("counter", 7));
    let other = lock.clone();
    let _ = std::thread::spawn(move || {
        let _guard = other.lock();
        panic!("on purpose");
    })
    .join();
    assert!(lock.is_poisoned());
    assert_eq!(*lock.lock().unwrap_err().into_inner(), 7);
    assert!(matches!(lock.try_lock(), Err(TryLockError::Poisoned(_))));
    lock.clear_poison();
    assert_eq!(*lock.lock().unwrap(), 7);
}

#[test]
fn a_lock_that_is_held_is_not_taken_and_readers_share() {
    let lock = RwLock::new("prices", 1);
    let (first, second) = (lock.read().unwrap(), lock.try_read().unwrap());
    assert_eq!((*first, *second), (1, 1));
    assert!(matches!(lock.try_write(), Err(TryLockError::WouldBlock)));
    drop((first, second));
    *lock.write().unwrap() = 2;
    assert_eq!(lock.into_inner().unwrap(), 2);
}

#[test]
fn a_condition_whose_time_is_over_says_so_and_one_that_is_notified_does_not() {
    let (lock, condvar) = (Mutex::new("is_ready", false), Condvar::new("ready"));
    let soon = Duration::from_millis(1);
    let (guard, result) = condvar.wait_timeout_while(lock.lock().unwrap(), soon, |ready| !*ready).unwrap();
    assert!(!*guard && result.timed_out());
    drop(guard);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            *lock.lock().unwrap() = true;
            condvar.notify_all();
        });
        let long = Duration::from_secs(60);
        let (guard, result) = condvar.wait_timeout_while(lock.lock().unwrap(), long, |ready| !*ready).unwrap();
        assert!(*guard && !result.timed_out());
    });
}

#[cfg(feature = "parking_lot")]
#[test]
fn a_lock_of_parking_lot_is_given_up_when_the_time_is_over() {
    let lock = parking_lot::Mutex::new("counter", 7);
    let guard = lock.lock();
    std::thread::scope(|scope| {
        let other = || lock.try_lock_for(Duration::from_millis(1)).is_none();
        assert!(scope.spawn(other).join().unwrap());
    });
    drop(guard);
    assert!(!lock.is_locked() && lock.try_lock_for(Duration::ZERO).is_some());
}

#[test]
fn a_reader_that_has_left_is_not_taken_for_the_owner() {
    let lock = RwLock::new("prices", 1);
    let _first = lock.read().unwrap();
    std::thread::scope(|scope| scope.spawn(|| drop(lock.read())).join().unwrap());
    assert_eq!(lock.word.owner().thread, 0);
    let other = lock.read().unwrap();
    assert_ne!(lock.word.owner().thread, 0);
    drop(other);
}
