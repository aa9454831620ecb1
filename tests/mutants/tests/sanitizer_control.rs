//! Faults that a sanitizer must find: the positive controls of `.ci/sanitizers`. The tests are marked `ignore`
//! because they are wrong on purpose.

#[test]
#[ignore = "reads behind the end of a vector"]
fn a_read_behind_the_end() {
    let bytes = std::hint::black_box(vec![1u8; 64]);
    // SAFETY: none; this is what AddressSanitizer has to find.
    let place = unsafe { bytes.as_ptr().add(64) };
    // SAFETY: none.
    let byte = unsafe { std::hint::black_box(place).read_volatile() };
    println!("not found: {byte}");
}

/// A counter that two threads change without any ordering.
struct Racy(std::cell::UnsafeCell<u64>);

// SAFETY: none; this is what ThreadSanitizer has to find.
unsafe impl Sync for Racy {}

#[test]
#[ignore = "has a data race"]
fn a_data_race() {
    let counter = Racy(std::cell::UnsafeCell::new(0));
    let start = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (counter, start) = (&counter, &start);
            scope.spawn(move || {
                start.wait();
                for _ in 0..100_000 {
                    // SAFETY: none.
                    let value = unsafe { counter.0.get().read_volatile() };
                    // SAFETY: none.
                    unsafe { counter.0.get().write_volatile(value + 1) };
                }
            });
        }
    });
    println!("not found");
}
