//! Deliberate faults in the protocol, which test our checks. If a fault is switched on, a model or a test of stalls, of
//! deaths or of hostile files must fail.
//!
//! In released builds [`active`] is the constant `false`. In models and under `--cfg eventring_mutants`, the
//! environment variable `EVENTRING_MUTATION` names the fault that is switched on.

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
    /// Fault: a writer zeroes the slot's seqno without a compare-exchange, as the original C implementation does.
    MissingClaim,
    /// Fault: the claim is a relaxed compare-exchange, not an acquire exchange.
    RelaxedClaim,
    /// Fault: there is no release fence between the claim and the stores of the event. The claim is a release
    /// operation instead, as in the original C implementation.
    MissingWriterFence,
    /// Fault: a reader executes no acquire fence between its copy (of an event or a payload) and the load that checks
    /// the copy. That load is an acquire load instead, as in the original C implementation.
    MissingReaderFence,
    /// Fault: the commit is a relaxed store, not a release store.
    RelaxedCommit,
    /// Fault: a writer that skips a seqno does not publish it as a hole.
    MissingHole,
    /// Fault: a writer gets its seqno by a relaxed addition without a fence. So the addition does not release earlier
    /// stores. And there is no fence between the mark "inside" and the check whether the run is still near.
    MissingEnterFence,
    /// Fault: a writer wants a chunk that another payload cursor took in an earlier pass through the buffer. The
    /// writer executes no fence before it checks whether the chunk's owner is inside a reservation.
    MissingThiefFence,
    /// Fault: a payload cursor fills its run of chunks to the end, even if an eighth of the buffer has been allocated
    /// since it took the run. (By then other threads may have taken the run's chunks.)
    MissingStaleCheck,
    /// Fault: the end of a reservation marks the payload cursor as "outside" by a relaxed store, not by a release
    /// store.
    RelaxedLeave,
    /// Fault: a chunk is freed by a relaxed store, not by a release store.
    RelaxedFree,
    /// Fault: a chunk is freed while a reservation that has its payload in the chunk is still open.
    MissingPin,
    /// Fault: the end of a nested reservation checks twice whether the payload lies in the run being filled: before and
    /// after the store that ends the reservation. A signal handler may change runs between the two checks.
    SecondLeaveLook,
    /// Fault: a thread that ends gives its payload cursor to the next thread although a reservation of the cursor is
    /// open.
    EarlyHandOver,
    /// Fault: a writer takes a chunk without a check whether the chunk's owner is inside a reservation.
    MissingChunkClaim,
    /// Fault: a writer that was stalled after it allocated a chunk takes the chunk, although another writer has taken
    /// it for a later pass through the payload buffer.
    MissingLapCheck,
    /// Fault: a writer moves the buffer window by one compare-exchange, and does not repeat the exchange if it fails.
    UnretriedWindow,
    /// Fault: a writer computes the new start of the buffer window by a subtraction that can wrap below zero.
    WindowUnderflow,
    /// Fault: there is no release fence between the move of the buffer window and the stores of the payload.
    MissingWindowFence,
    /// Fault: a reader does not check the buffer window after it has copied a payload. So it may return overwritten
    /// bytes.
    MissingWindowCheck,
    /// Fault: a writer stores the seqno before the other words of the descriptor.
    EarlyCommit,
    /// Fault: a reader takes a dead writer for a live writer.
    DeathUnnoticed,
    /// Fault: a reader counts one lost event too few in each gap.
    UncountedLoss,
    /// Fault: a reader that skips seqnos stays at its present seqno if the file names no later seqno. So a damaged
    /// header can keep the reader at this seqno for ever.
    HeldCursor,
    /// Fault: a reader uses the payload size in a descriptor without a check.
    TrustedPayloadSize,
    /// Fault: a reader uses the size in a snapshot without a check.
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
