//! Deliberate faults: the positive controls of the model, stall, death and hostile checks.
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
    /// No release fence between claim and fill; the claim releases instead, as in the published algorithm.
    MissingWriterFence,
    /// No acquire fence between copy and re-load; the re-load acquires instead, as in the published algorithm.
    MissingReaderFence,
    /// The commit is a relaxed store.
    RelaxedCommit,
    /// A seqno that is given up is not published as a hole.
    MissingHole,
    /// Seqnos are handed out by a relaxed addition without a fence: no earlier store is released with them, and there
    /// is no fence between the mark "inside" and the check whether the run is near.
    MissingEnterFence,
    /// No fence between the allocation of a chunk's next turn and the check whether its owner is inside.
    MissingThiefFence,
    /// A payload cursor keeps its run, however long ago the run was allocated.
    MissingStaleCheck,
    /// Leaving is a relaxed store.
    RelaxedLeave,
    /// A chunk is freed by a relaxed store.
    RelaxedFree,
    /// A chunk is freed although a reservation with payload in it is open.
    MissingPin,
    /// A nested reservation that ends checks a second time, after it has left, whether its payload is in the run being
    /// filled.
    SecondLeaveLook,
    /// A payload cursor is handed on to the next thread while one of its reservations is open.
    EarlyHandOver,
    /// A chunk is taken without a check whether its owner is inside.
    MissingChunkClaim,
    /// A chunk is taken by a writer that allocated it a lap ago.
    MissingLapCheck,
    /// The window is moved by one compare-exchange that is not repeated when it fails.
    UnretriedWindow,
    /// The window's distance is computed by a subtraction that can wrap.
    WindowUnderflow,
    /// No release fence between window move and payload stores.
    MissingWindowFence,
    /// A reader does not compare the window with the payload that it has copied.
    MissingWindowCheck,
    /// The seqno is stored before the other words of the descriptor.
    EarlyCommit,
    /// A reader takes a dead writer for a live writer.
    DeathUnnoticed,
    /// A reader counts one lost event too few in each gap.
    UncountedLoss,
    /// A reader stops where the file says that the ring ends.
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
/// If the environment names a fault that does not exist. Otherwise such a check would test nothing.
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
