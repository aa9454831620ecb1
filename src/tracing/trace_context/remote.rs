//! The context of a remote caller: its trace, its span and its flags, from the headers of a request.

use super::tracestate::is_tracestate;
use crate::span_slab::{RemoteTrace, TraceId};
use std::fmt;
use std::num::NonZeroU64;

/// The name of the header with the ids, of W3C Trace Context.
pub const TRACEPARENT: &str = "traceparent";
/// The name of the header with what vendors add, of W3C Trace Context.
pub const TRACESTATE: &str = "tracestate";
/// The flag that the caller records the trace.
pub(in crate::tracing) const SAMPLED: u8 = 1;
/// The flags that have a meaning: [`SAMPLED`], and that the id of the trace is random. The standard wants the others to
/// be 0 in what is passed on.
const KNOWN_FLAGS: u8 = SAMPLED | 2;
/// The length of `traceparent` in its version 0.
const TRACEPARENT_BYTES: usize = 55;
/// The length up to which a `traceparent` of a later version is read.
const LATER_TRACEPARENT_BYTES_MAX: usize = 256;

/// The context of a remote caller: the span from which a request came.
///
/// `{}` prints the value of `traceparent`.
///
/// ```
/// use eventring::tracing::context::RemoteContext;
///
/// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// let caller = RemoteContext::parse(header, None).expect("a valid header");
/// assert_eq!(caller.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// assert_eq!((caller.span_id(), caller.is_sampled()), (0x00f0_67aa_0ba9_02b7, true));
/// assert_eq!(caller.to_string(), header);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteContext {
    pub(in crate::tracing) trace: RemoteTrace,
    pub(in crate::tracing) span_id: NonZeroU64,
    pub(in crate::tracing) state: Option<Box<str>>,
}

impl RemoteContext {
    /// Reads the values of the headers `traceparent` and `tracestate`. Returns `None` if `traceparent` is not exactly
    /// as W3C Trace Context says. A `tracestate` that is not valid, or longer than 512 bytes, is left out.
    #[must_use]
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let state = tracestate.filter(|state| is_tracestate(state)).map(Box::from);
        Some(Self { state, ..Self::parse_traceparent(traceparent)? })
    }

    fn parse_traceparent(text: &str) -> Option<Self> {
        let (head, rest) = text.as_bytes().split_at_checked(TRACEPARENT_BYTES)?;
        let (version, flags) = (hex(&head[..2])? as u8, hex(&head[53..])? as u8);
        let is_whole = match version {
            0 => rest.is_empty(),
            u8::MAX => false,
            // A later version may have more parts.
            _ => rest.first().is_none_or(|byte| *byte == b'-') && rest.len() <= LATER_TRACEPARENT_BYTES_MAX,
        };
        if !is_whole || [2, 35, 52].iter().any(|at| head[*at] != b'-') {
            return None;
        }
        // Of a later version only the flag of version 0 has a known meaning.
        let flags = if version == 0 { flags } else { flags & SAMPLED };
        Self::new(TraceId::new(hex(&head[3..35])?)?, hex(&head[36..52])? as u64, flags)
    }

    /// Makes a context. Returns `None` if `span_id` is 0. Of `flags` it keeps the two that W3C Trace Context defines: 1,
    /// sampled, and 2, the id of the trace is random.
    #[must_use]
    pub fn new(trace_id: TraceId, span_id: u64, flags: u8) -> Option<Self> {
        let trace = RemoteTrace { trace_id, flags: flags & KNOWN_FLAGS };
        Some(Self { trace, span_id: NonZeroU64::new(span_id)?, state: None })
    }

    /// Returns the id of the trace.
    #[must_use]
    pub fn trace_id(&self) -> TraceId {
        self.trace.trace_id
    }

    /// Returns the id of the caller's span.
    #[must_use]
    pub fn span_id(&self) -> u64 {
        self.span_id.get()
    }

    /// Returns the flags of `traceparent` that have a meaning; see [`Self::new`].
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.trace.flags
    }

    /// Returns true if the caller records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.trace.flags & SAMPLED != 0
    }

    /// Overrides whether the trace is recorded. `inject` passes this on.
    #[must_use]
    pub fn with_sampled(mut self, is_sampled: bool) -> Self {
        self.trace.flags = self.trace.flags & !SAMPLED | if is_sampled { SAMPLED } else { 0 };
        self
    }

    /// Returns the value of `tracestate`, if there was a valid one.
    #[must_use]
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Display for RemoteContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{:016x}-{:02x}", self.trace.trace_id, self.span_id, self.trace.flags)
    }
}

/// Takes the context of the caller out of the headers of a request. `get` returns the value of the header with this
/// name, which is in lower case. Returns `None` if there is no valid context.
///
/// These forms are tried in this order: W3C Trace Context (`traceparent`, `tracestate`), the header `b3`, and the
/// headers `x-b3-traceid`, `x-b3-spanid`, `x-b3-sampled` and `x-b3-flags`.
///
/// ```
/// use eventring::tracing::context::extract;
/// use std::collections::HashMap;
///
/// let headers = HashMap::from([("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]);
/// // With the crate `http`: `extract(|name| headers.get(name)?.to_str().ok())`.
/// assert!(extract(|name| headers.get(name)).is_some());
/// ```
#[must_use]
pub fn extract<V: AsRef<str>>(mut get: impl FnMut(&str) -> Option<V>) -> Option<RemoteContext> {
    if let Some(parent) = get(TRACEPARENT) {
        let state = get(TRACESTATE);
        if let Some(context) = RemoteContext::parse(parent.as_ref(), state.as_ref().map(AsRef::as_ref)) {
            return Some(context);
        }
    }
    if let Some(context) = get("b3").and_then(|value| b3(value.as_ref())) {
        return Some(context);
    }
    let (trace_id, span_id) = (get("x-b3-traceid")?, get("x-b3-spanid")?);
    let is_debug = get("x-b3-flags").is_some_and(|flags| flags.as_ref() == "1");
    let sampled = get("x-b3-sampled");
    let sampled = if is_debug { Some("d") } else { sampled.as_ref().map(AsRef::as_ref) };
    b3_parts(trace_id.as_ref(), span_id.as_ref(), sampled)
}

/// Reads the header `b3`: trace, span, perhaps whether it is sampled, perhaps the parent of the span.
fn b3(value: &str) -> Option<RemoteContext> {
    let mut parts = value.splitn(5, '-');
    let (trace_id, span_id) = (parts.next()?, parts.next()?);
    let (sampled, parent) = (parts.next(), parts.next());
    let is_valid = parent.is_none_or(|parent| parent.len() == 16 && hex(parent.as_bytes()).is_some());
    (is_valid && parts.next().is_none()).then(|| b3_parts(trace_id, span_id, sampled))?
}

fn b3_parts(trace_id: &str, span_id: &str, sampled: Option<&str>) -> Option<RemoteContext> {
    let flags = match sampled {
        // Without a word the decision is left to this program, and it records.
        None | Some("1" | "d" | "true") => SAMPLED,
        Some("0" | "false") => 0,
        Some(_) => return None,
    };
    if !matches!(trace_id.len(), 16 | 32) || span_id.len() != 16 {
        return None;
    }
    RemoteContext::new(TraceId::new(hex(trace_id.as_bytes())?)?, hex(span_id.as_bytes())? as u64, flags)
}

/// Reads lower-case hexadecimal digits, 32 at most.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn of(headers: &[(&str, &str)]) -> Option<String> {
        let found = extract(|name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value));
        found.map(|context| context.to_string())
    }

    #[test]
    fn a_header_that_is_not_exactly_as_the_standard_says_is_no_context() {
        assert_eq!(of(&[("traceparent", PARENT)]).as_deref(), Some(PARENT));
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0g-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
        ] {
            assert_eq!(of(&[("traceparent", wrong)]), None, "{wrong}");
        }
        // Of a later version, the known parts are read.
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-09-what-the-future-will-be";
        assert_eq!(of(&[("traceparent", later)]).as_deref(), Some(PARENT));
    }

    #[test]
    fn b3_is_read_from_one_header_and_from_several() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let not_sampled = PARENT.replace("-01", "-00");
        let one = |more: &str| of(&[("b3", &format!("{trace}-{span}{more}"))]);
        for more in ["", "-1", "-d", "-1-00f067aa0ba902b8"] {
            assert_eq!(one(more).as_deref(), Some(PARENT), "{more}");
        }
        assert_eq!(one("-0").as_deref(), Some(&*not_sampled));
        for more in ["-", "-x", "-1-2", "-1-00f067aa0ba902b8-", "-1-00f067aa0ba902bX"] {
            assert_eq!(one(more), None, "{more}");
        }
        assert_eq!((of(&[("b3", "0")]), of(&[("b3", "")])), (None, None));
        let ids = [("x-b3-traceid", trace), ("x-b3-spanid", span)];
        assert_eq!(of(&ids).as_deref(), Some(PARENT));
        assert_eq!(of(&[ids[0], ids[1], ("x-b3-sampled", "0")]).as_deref(), Some(&*not_sampled));
        assert_eq!(of(&[ids[0], ids[1], ("x-b3-sampled", "0"), ("x-b3-flags", "1")]).as_deref(), Some(PARENT));
        assert_eq!(of(&[ids[0]]), None);
        // Short ids of traces are the low half.
        let short = of(&[("x-b3-traceid", "a3ce929d0e0e4736"), ids[1]]);
        assert_eq!(short.as_deref(), Some("00-0000000000000000a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        // The standard comes first, unless it is damaged.
        assert_eq!(of(&[("traceparent", &not_sampled), ids[0], ids[1]]).as_deref(), Some(&*not_sampled));
        assert_eq!(of(&[("traceparent", "00"), ids[0], ids[1]]).as_deref(), Some(PARENT));
    }

    #[test]
    fn no_flag_without_a_meaning_comes_in_or_goes_out() {
        for (flags, kept) in (0..=u8::MAX).map(|flags| (flags, flags & 3)) {
            let header = PARENT.replace("-01", &format!("-{flags:02x}"));
            assert_eq!(of(&[("traceparent", &header)]), Some(PARENT.replace("-01", &format!("-{kept:02x}"))));
            let made = RemoteContext::new(TraceId::MIN, 1, flags).unwrap();
            assert_eq!((made.flags(), made.with_sampled(true).flags()), (kept, kept | SAMPLED));
            // Of a later version only one flag has a known meaning.
            let later = of(&[("traceparent", &header.replacen("00", "01", 1))]);
            assert_eq!(later, Some(PARENT.replace("-01", &format!("-{:02x}", flags & SAMPLED))));
        }
    }

    #[test]
    fn the_flag_is_kept_until_it_is_overridden() {
        let context = RemoteContext::parse(&PARENT.replace("-01", "-02"), Some("a=1")).unwrap();
        assert_eq!((context.is_sampled(), context.flags(), context.tracestate()), (false, 2, Some("a=1")));
        let sampled = context.with_sampled(true);
        assert_eq!((sampled.flags(), sampled.clone().with_sampled(false).flags()), (3, 2));
        assert_eq!(RemoteContext::parse(PARENT, Some("no")).unwrap().tracestate(), None);
    }
}
