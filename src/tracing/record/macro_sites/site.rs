//! The call site of a macro of this crate.

use crate::sync::{AtomicUsize, Ordering};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::NO_CALL_SITE;
use tracing_core::Metadata;

/// Values of [`MacroSite::state`].
pub(in crate::tracing::record) const UNKNOWN: usize = 0;
pub(in crate::tracing::record) const OFF: usize = 1;
/// The answer depends on the spans that the thread is in: each time, the subscriber or layer is asked.
pub(in crate::tracing::record) const ASK: usize = 2;
pub(in crate::tracing::record) const ON: usize = 3;

/// The call site of a macro of this crate. Each use of such a macro has one, in a static.
#[derive(Debug)]
pub struct MacroSite {
    pub(in crate::tracing::record) state: AtomicUsize,
    /// The id of the call site, or [`NO_CALL_SITE`] until it is known.
    id: AtomicUsize,
    pub(in crate::tracing::record) metadata: &'static Metadata<'static>,
}

impl MacroSite {
    /// Makes the call site with this description.
    #[must_use]
    pub const fn new(metadata: &'static Metadata<'static>) -> Self {
        Self { state: AtomicUsize::new(UNKNOWN), id: AtomicUsize::new(NO_CALL_SITE as usize), metadata }
    }

    /// Returns the id of the call site, if it is known and everything from here is wanted. Otherwise returns `None`,
    /// and the caller takes the slow path.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_id(&self) -> Option<u32> {
        if self.state.load(Ordering::Relaxed) != ON {
            return None;
        }
        // Acquire, pairs with the release in `learn_id`: the tables have the call site.
        match self.id.load(Ordering::Acquire) as u32 {
            NO_CALL_SITE => None,
            id => Some(id),
        }
    }

    pub(in crate::tracing::record) fn learn_id(&self, core: &PerfCore) -> u32 {
        let id = core.call_site_id(self.metadata);
        // Release, pairs with the acquire in `try_id`: the tables of all recorders have the call site already.
        self.id.store(id as usize, Ordering::Release);
        id
    }

    /// Notes that no subscriber or layer decides any more.
    pub(in crate::tracing::record) fn follow_nobody(&self) {
        self.state.store(if PERF.active().is_some() { ON } else { OFF }, Ordering::Relaxed);
    }

    /// Returns the description.
    #[must_use]
    pub fn metadata(&self) -> &'static Metadata<'static> {
        self.metadata
    }
}

/// Returns the name of a field: a raw identifier without its mark, as in `tracing`.
#[must_use]
pub const fn field_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Makes the call site of a macro: an expression that is a `&'static MacroSite`.
#[doc(hidden)]
#[macro_export]
macro_rules! __macro_site {
    ($kind:ident, name: $name:expr, target: $target:expr, level: $level:expr, fields: $fields:expr) => {{
        static __EVENTRING_METADATA: $crate::__private::Metadata<'static> = $crate::__private::Metadata::new(
            $name,
            $target,
            $level,
            ::core::option::Option::Some(::core::file!()),
            ::core::option::Option::Some(::core::line!()),
            ::core::option::Option::Some(::core::module_path!()),
            $crate::__private::FieldSet::new($fields, $crate::__private::Identifier(&__EVENTRING_SITE)),
            $crate::__private::Kind::$kind,
        );
        static __EVENTRING_SITE: $crate::__private::MacroSite =
            $crate::__private::MacroSite::new(&__EVENTRING_METADATA);
        &__EVENTRING_SITE
    }};
}
