//! Deliberate faults in the protocol. They test the checks: models, and tests of stalls, of deaths and of hostile
//! files. With a fault switched on, a check must fail.
//!
//! In released builds [`active`] is the constant `false`, and the compiler removes every branch on it. In models and
//! under `--cfg eventring_mutants`, the environment variable `EVENTRING_MUTATION` names the fault that is switched on.

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
    /// The slot is zeroed without a compare-exchange, as in the original C implementation.
    MissingClaim,
    /// The claim is a relaxed compare-exchange.
    RelaxedClaim,
    /// No release fence between the claim and the stores of the event. The claim is a release operation instead, as in
    /// the original C implementation.
    MissingWriterFence,
    /// No acquire fence in a reader between the copy of the event and the second load of the seqno. The second load is
    /// an acquire load instead, as in the original C implementation.
    MissingReaderFence,
    /// The commit is a relaxed store.
    RelaxedCommit,
    /// A writer that gives up a seqno does not publish it as a hole.
    MissingHole,
    /// Seqnos are handed out by a relaxed addition without a fence. So the addition does not release earlier stores.
    /// Also, no fence comes between the mark "inside" and the check whether the run was taken recently enough.
    MissingEnterFence,
    /// A writer allocates a chunk that another cursor took one pass through the buffer earlier. It executes no fence
    /// before it checks whether the chunk's owner is inside a reservation.
    MissingThiefFence,
    /// A payload cursor fills its run of chunks to the end, even if an eighth of the buffer has been allocated since
    /// it took the run. (By then other threads may have taken the run's chunks.)
    MissingStaleCheck,
    /// The end of a reservation marks the payload cursor as "outside" by a relaxed store, not by a release store.
    RelaxedLeave,
    /// A chunk is freed by a relaxed store, not by a release store.
    RelaxedFree,
    /// A chunk is freed while a reservation that has its payload in the chunk is still open.
    MissingPin,
    /// The end of a nested reservation checks twice whether its payload lies in the run of chunks being filled: before
    /// the store that ends the reservation, and again after it. A signal handler may change runs between the two
    /// checks.
    SecondLeaveLook,
    /// A thread that ends hands its payload cursor to the next thread although a reservation of the cursor is open.
    EarlyHandOver,
    /// A writer takes a chunk without checking whether the chunk's owner is inside a reservation.
    MissingChunkClaim,
    /// A writer allocates a chunk, and is then stalled for a whole pass through the payload buffer. It takes the chunk
    /// although a later pass has begun.
    MissingLapCheck,
    /// A writer moves the buffer window by one compare-exchange, and does not repeat the exchange if it fails.
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
    /// A reader that skips seqnos continues at the seqno that the file names, even if that is the reader's present
    /// seqno. So a damaged header can hold the reader for ever.
    HeldCursor,
    /// A reader uses the payload size in a descriptor without checking it.
    TrustedPayloadSize,
    /// A reader uses the size in a snapshot without checking it.
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
/// If the environment names a fault that does not exist. (Without this panic, a misspelt name would switch on no
/// fault, and the check would test nothing.)
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
