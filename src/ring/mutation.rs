//! Deliberate faults in the protocol. They test the model, stall, death and hostile checks: with a fault switched on, a
//! check must fail.
//!
//! In released builds [`active`] is the constant `false`, and the compiler removes every branch on it. Under
//! `--cfg eventring_mutants`, and in models, the environment variable `EVENTRING_MUTATION` names the fault that is
//! active; the checks must then fail.

macro_rules! mutations {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A plausible mistake in the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "builds without some feature, and models, have no use for some")]
        pub(crate) enum Mutation {
            $($(#[doc = $doc])* $name,)*
        }

        #[cfg(any(loom, shuttle, eventring_mutants))]
        const ALL: &[Mutation] = &[$(Mutation::$name,)*];
    };
}

mutations! {
    /// The slot is zeroed without a compare-exchange, as in the published algorithm.
    MissingClaim,
    /// The claim is a relaxed compare-exchange.
    RelaxedClaim,
    /// No release fence between the claim and the stores of the event; the claim is a release operation instead, as in
    /// the published algorithm.
    MissingWriterFence,
    /// No acquire fence in a reader between the copy of the event and the second load of the seqno; the second load is
    /// an acquire load instead, as in the published algorithm.
    MissingReaderFence,
    /// The commit is a relaxed store.
    RelaxedCommit,
    /// A writer that gives a seqno up does not publish the seqno as a hole.
    MissingHole,
    /// Seqnos are handed out by a relaxed addition without a fence: no earlier store is released with them, and there
    /// is no fence between the mark "inside" and the check whether the run is near.
    MissingEnterFence,
    /// No fence in a writer between the allocation of a chunk, one pass through the buffer after its owner, and the
    /// check whether the owner is inside a reservation.
    MissingThiefFence,
    /// A payload cursor fills its run to the end, even if the run is no longer near. (By then other threads may have
    /// taken the run's chunks.)
    MissingStaleCheck,
    /// The end of a reservation marks the payload cursor as "outside" by a relaxed store, not by a release store.
    RelaxedLeave,
    /// A chunk is freed by a relaxed store, not by a release store.
    RelaxedFree,
    /// A chunk is freed although a reservation with payload in it is open.
    MissingPin,
    /// The end of a nested reservation checks twice whether its payload lies in the run being filled: before the store
    /// that ends the reservation, and again after it. A signal handler may change runs between the two checks.
    SecondLeaveLook,
    /// A thread that ends hands its payload cursor to the next thread although a reservation of the cursor is open.
    EarlyHandOver,
    /// A writer takes a chunk without a check whether the chunk's owner is inside a reservation.
    MissingChunkClaim,
    /// A writer that allocated a chunk, and was then stalled for a whole pass through the buffer, takes the chunk
    /// although a later pass has begun.
    MissingLapCheck,
    /// A writer moves the buffer window by one compare-exchange that it does not repeat when it fails.
    UnretriedWindow,
    /// A writer computes the new start of the buffer window by a subtraction that can wrap below zero.
    WindowUnderflow,
    /// No release fence between the move of the buffer window and the stores of the payload.
    MissingWindowFence,
    /// A reader does not check the buffer window after it has copied a payload, so that it may return overwritten
    /// bytes.
    MissingWindowCheck,
    /// The seqno is stored before the other words of the descriptor.
    EarlyCommit,
    /// A reader takes a dead writer for a live writer.
    DeathUnnoticed,
    /// A reader counts one lost event too few in each gap.
    UncountedLoss,
    /// A reader that skips seqnos may stay where it is, if the file names its present seqno as the place to continue.
    /// So a damaged header can hold the reader for ever.
    HeldCursor,
    /// A reader uses the payload size that a descriptor names without a check.
    TrustedPayloadSize,
    /// A reader uses the size that a snapshot names without a check.
    TrustedSnapshotSize,
}

/// Returns true if the fault is switched on.
#[cfg(not(any(loom, shuttle, eventring_mutants)))]
#[inline(always)]
pub(crate) const fn active(_: Mutation) -> bool {
    false
}

/// Returns true if the fault is switched on.
///
/// # Panics
/// If the environment names a fault that does not exist. (Without this panic, a misspelt name would switch no fault on,
/// and the check would test nothing.)
#[cfg(any(loom, shuttle, eventring_mutants))]
pub(crate) fn active(mutation: Mutation) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<Mutation>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("EVENTRING_MUTATION").ok().filter(|name| !name.is_empty())?;
        let found = ALL.iter().copied().find(|mutation| format!("{mutation:?}") == name);
        Some(found.unwrap_or_else(|| panic!("EVENTRING_MUTATION={name}: there is no such fault, only {ALL:?}")))
    });
    *chosen == Some(mutation)
}
