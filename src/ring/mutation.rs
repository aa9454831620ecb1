//! Deliberate faults: the positive controls of the model and stall checks.
//!
//! In ordinary builds [`active`] is the constant `false` and every branch on it disappears. Under `--cfg
//! eventring_mutants`, and in models, the environment variable `EVENTRING_MUTATION` names the fault that is active; the
//! checks must then fail.

/// One way in which the protocol could have been written wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// The slot is zeroed without a compare-exchange, as in the published algorithm.
    MissingClaim,
    /// No release fence between claim and fill.
    MissingWriterFence,
    /// No acquire fence between copy and re-load.
    MissingReaderFence,
    /// The window is moved by one compare-exchange that is not repeated when it fails.
    UnretriedWindow,
    /// The window's distance is computed by a subtraction that can wrap.
    WindowUnderflow,
    /// A chunk is taken without asking whether its owner is inside.
    MissingChunkClaim,
    /// No fence between saying "inside" and looking whether the chunk is still ours.
    MissingLaneFence,
    /// The commit is a relaxed store.
    RelaxedCommit,
}

/// Whether `mutation` is switched on.
#[cfg(not(any(loom, shuttle, eventring_mutants)))]
#[inline(always)]
pub(crate) const fn active(_: Mutation) -> bool {
    false
}

/// Whether `mutation` is switched on.
#[cfg(any(loom, shuttle, eventring_mutants))]
pub(crate) fn active(mutation: Mutation) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("EVENTRING_MUTATION").ok());
    chosen.as_deref().is_some_and(|name| name == format!("{mutation:?}"))
}
