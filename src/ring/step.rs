//! Named points between the steps of recording. At each of them a test can make a writer stop.
//!
//! A writer calls [`at`] at each point. Under `--cfg eventring_mutants`, [`at`] calls a function of the test, which may
//! block the writer for any time. In other builds it does nothing.

macro_rules! steps {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A step of a writer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "ordinary builds name the steps and do nothing there")]
        pub enum Step {
            $($(#[doc = $doc])* $name,)*
        }

        /// All steps, in this order.
        #[cfg(eventring_mutants)]
        pub const ALL: &[Step] = &[$(Step::$name,)*];
    };
}

steps! {
    /// The payload cursor is inside, and has tried to take bytes from its run.
    Entered,
    /// A seqno was handed out.
    Reserved,
    /// The slot's seqno was read.
    SlotSeen,
    /// The slot was claimed.
    Claimed,
    /// The slot could not be claimed. The seqno is not published as a hole yet.
    Refused,
    /// The hole is published, and is not counted yet.
    HolePublished,
    /// The payload cursor has released its run, and has no new run yet.
    RunReleased,
    /// Payload memory has been allocated. The writer has not taken its chunks yet.
    ChunkAllocated,
    /// The owner word of a chunk was read. The chunk is not taken yet.
    OwnerSeen,
    /// All chunks of the new run or of the payload are taken. The buffer window has not moved yet.
    ChunksTaken,
    /// The start of the buffer window was read.
    WindowSeen,
    /// The buffer window has moved.
    WindowMoved,
    /// A piece of the payload was copied.
    Filled,
    /// One word of the descriptor is stored.
    HalfDescribed,
    /// All words of the descriptor but the seqno are stored.
    Described,
    /// The event is committed. The payload cursor is still inside.
    Committed,
    /// A chunk was freed. It is a one-off chunk, or the writer could not take all chunks that it wanted.
    ChunkFreed,
    /// The reservation has ended.
    Left,
}

/// Notes that the calling thread is at `step`.
#[cfg(not(eventring_mutants))]
#[inline(always)]
pub(super) const fn at(_: Step) {}

#[cfg(eventring_mutants)]
static HOOK: std::sync::OnceLock<fn(Step)> = std::sync::OnceLock::new();

/// Makes every writer of this process call `hook` at every step after this call.
///
/// # Panics
/// If another hook has been set.
#[cfg(eventring_mutants)]
pub fn set_hook(hook: fn(Step)) {
    assert!(*HOOK.get_or_init(|| hook) as usize == hook as usize, "there is a hook already");
}

/// Notes that the calling thread is at `step`.
#[cfg(eventring_mutants)]
pub(super) fn at(step: Step) {
    if let Some(hook) = HOOK.get() {
        hook(step);
    }
}
