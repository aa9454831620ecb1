//! The macros `record!`, `recordv!` and `ext_scope!`.

use crate::global::RecordsTo;
use crate::schema::{EventPayload, EventType, PayloadOf};

/// Records a typed event.
///
/// ```
/// use eventring::{record, schema::test::{TestCounter, TestEvent}};
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let my_recorder = Recorder::builder(ContentDescription::from_event_type::<TestEvent>()).anonymous().build()?;
///
/// // To the recorder that the event type names (`#[event(recorder = …)]`); nothing happens while that is off.
/// // record!(Shop::DayEnded);
/// // record!(Shop::OrderFilled, &order);
/// // record!(Shop::OrderFilled, &order; customer = customer_id);
///
/// // To a recorder of one's own choice.
/// let counter = TestCounter { writer_id: 1, counter: 2 };
/// record!(my_recorder => TestEvent::TestCounter, &counter);
/// record!(my_recorder => TestEvent::TestCounter, &counter; ext[0] = 7, ext[1] = 8);
/// assert_eq!(my_recorder.stats().last_seqno, 2);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// The event is a path to a variant of an enum that derives [`EventType`]. The payload follows: the struct that the
/// enum names for the variant, by value or by reference. The compiler checks its type. An event without a struct has
/// no payload.
///
/// Extension words come after `;`. A word is given as `ext[N] = value`, or as `NAME = value` with a name that the enum
/// gives to a word (`#[event(ext(INDEX = NAME))]`). Word 3 has the name `span`, unless the enum says
/// `#[event(no_span)]`. An event has only four words, which the compiler checks:
///
/// ```compile_fail,E0080
/// # use eventring::{record, schema::test::{TestCounter, TestEvent}};
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let my_recorder = Recorder::builder(ContentDescription::from_event_type::<TestEvent>()).anonymous().build().unwrap();
/// let counter = TestCounter { writer_id: 1, counter: 2 };
/// record!(my_recorder => TestEvent::TestCounter, &counter; ext[4] = 7);
/// ```
///
/// The event must be known at compile time, so that the compiler can check its payload. So it must be a variant or a
/// `const`, not a variable. If a program chooses an event at run time, it can record the event by its code, with the
/// payload as bytes:
///
/// ```
/// # use eventring::{record, schema::{EventPayload, EventType, test::{TestCounter, TestEvent}}};
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let my_recorder = Recorder::builder(ContentDescription::from_event_type::<TestEvent>()).anonymous().build()?;
/// let counter = TestCounter { writer_id: 1, counter: 2 };
/// const EVENT: TestEvent = TestEvent::TestCounter;
/// record!(my_recorder => EVENT, &counter);
/// let event = if counter.counter == 2 { TestEvent::TestCounter } else { TestEvent::RecordError };
/// counter.with_bytes(|bytes| my_recorder.record(event.code(), [0; 4], bytes));
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// If the call is made inside a span that the feature `tracing` records, word 3 of the event is the span's id. A value
/// that the call gives to word 3 replaces the id. If the enum says `#[event(no_span)]`, word 3 is not the id.
///
/// While the recorder is off, a call costs one relaxed load and a branch. The expressions of the payload and of the
/// extension words are not evaluated. The same holds while the domain of the event is off
/// ([`Recorder::disable_domain`](crate::recorder::Recorder::disable_domain)). `recordv!` with `raw(CODE)` and
/// [`Recorder::record`](crate::recorder::Recorder::record) do not look at domains.
///
/// A ring holds events of one schema. If the recorder's ring has another content type or schema hash than the event's
/// enum, nothing is evaluated or recorded. The recorder counts this event in
/// [`RecorderStats::foreign_events`](crate::recorder::RecorderStats::foreign_events), which `eventring info` shows. If
/// the recorder's description states no schema hash, only the content type is compared.
///
/// The value of the macro is the event's seqno, or 0 if nothing was recorded.
#[macro_export]
macro_rules! record {
    ($recorder:expr => $event:path $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!((own_for(&$recorder, &$event), $crate::__private::span_ext(&$event)) $event, &(), fixed [], $($($ext)*)?)
    };
    ($recorder:expr => $event:path, $payload:expr $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!((own_for(&$recorder, &$event), $crate::__private::span_ext(&$event)) $event, $payload, fixed [], $($($ext)*)?)
    };
    ($event:path $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!((active_for(&$event), $crate::__private::default_ext($event)) $event, &(), fixed [], $($($ext)*)?)
    };
    ($event:path, $payload:expr $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!((active_for(&$event), $crate::__private::default_ext($event)) $event, $payload, fixed [], $($($ext)*)?)
    };
}

/// Records a typed event with trailing arrays. The payload is a fixed struct, followed by the bytes of the slices, in
/// order.
///
/// ```
/// use eventring::recordv;
/// # use eventring::recorder::{ContentDescription, Recorder};
/// use eventring::{EventPayload, EventType};
///
/// #[derive(EventPayload)]
/// struct Batch {
///     order_count: u32,
/// }
///
/// #[derive(EventType, Clone, Copy)]
/// #[event(content_type = 300, ext(1 = customer))]
/// #[repr(u16)]
/// enum Shop {
///     #[event(payload = Batch, trailing(orders: u64 * order_count, note: eventring::schema::Utf8))]
///     BatchPlaced = 2,
/// }
/// # let recorder = Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().build()?;
///
/// let orders = eventring::schema::encode_array(&[17u64, 18]);
/// recordv!(recorder => Shop::BatchPlaced, &Batch { order_count: 2 }, [&orders, b"in a hurry"]; customer = 7);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// In all other respects this macro is like [`record!`]. It gathers up to 15 slices without a memory allocation. The
/// compiler refuses slices for an event that has no trailing arrays. Nothing checks that a slice has as many elements
/// as its count in the struct says.
///
/// A program that forwards events may not know their types. It gives the event's code as `raw(CODE)`, and the payload
/// as slices of bytes. Then nothing is checked:
///
/// ```
/// # use eventring::recordv;
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let recorder = Recorder::builder(ContentDescription::new(300, "THINGS")).anonymous().build()?;
/// let seqno = recordv!(recorder => raw(18), [b"one ", b"payload"]; ext[1] = 7);
/// assert_eq!(seqno, 1);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
#[macro_export]
macro_rules! recordv {
    ($recorder:expr => raw($code:expr), [$($part:expr),* $(,)?] $(,)? $(; $($ext:tt)*)?) => {
        match $crate::__private::own(&$recorder) {
            ::core::option::Option::Some(active) => {
                let content_ext = $crate::__ext!([0; 4], raw, $($($ext)*)?);
                active.recorder().recordv($code, content_ext, &[$($part),*])
            }
            ::core::option::Option::None => 0,
        }
    };
    ($recorder:expr => $event:path, $payload:expr, [$($part:expr),* $(,)?] $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!((own_for(&$recorder, &$event), $crate::__private::span_ext(&$event)) $event, $payload, gathered [$($part),*], $($($ext)*)?)
    };
    ($event:path, $payload:expr, [$($part:expr),* $(,)?] $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!((active_for(&$event), $crate::__private::default_ext($event)) $event, $payload, gathered [$($part),*], $($($ext)*)?)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    (($find:ident($($of:expr),*), $default_ext:expr) $event:path, $payload:expr, $how:ident [$($part:expr),*], $($ext:tt)*) => {
        match $crate::__private::$find::<
            { $crate::__private::domain($event, $event as ::core::primitive::u16) },
            _,
        >($($of),*) {
            ::core::option::Option::Some(active) => {
                use $crate::__private::PayloadReference as _;
                let content_ext = $crate::__ext!($default_ext, [$event], $($ext)*);
                // The event's code is passed as an expression and not as a named constant. Items of a macro are not
                // hygienic, so a named constant would hide a constant of the same name that the caller's expressions
                // below use.
                $crate::__private::Coded::<
                    { $crate::__private::$how($event, $event as ::core::primitive::u16, 0 $(+ $crate::__one!($part))*) },
                    _,
                >($event)
                .record(
                    active.recorder(),
                    (&$payload).payload_reference(),
                    content_ext,
                    &[$($part),*],
                )
            }
            ::core::option::Option::None => 0,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __one {
    ($part:expr) => {
        1
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __ext {
    ($default:expr, $of:tt, ) => { $default };
    ($default:expr, $of:tt, $($ext:tt)+) => {{
        let mut content_ext = $default;
        $crate::__set_ext!(content_ext, $of, $($ext)+);
        content_ext
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __set_ext {
    ($to:ident, $of:tt, ) => {};
    ($to:ident, $of:tt, ext[$index:expr] = $value:expr $(, $($rest:tt)*)?) => {
        const { ::core::assert!($index < 4usize, "an event has the extension words ext[0] to ext[3]") };
        $to[$index] = $value;
        $crate::__set_ext!($to, $of, $($($rest)*)?);
    };
    ($to:ident, [$event:path], $word:ident = $value:expr $(, $($rest:tt)*)?) => {
        $to[$crate::__private::index::<{ $crate::__private::word(&$event, ::core::stringify!($word)) }>()] = $value;
        $crate::__set_ext!($to, [$event], $($($rest)*)?);
    };
    ($to:ident, $of:tt, $($other:tt)+) => {
        ::core::compile_error!(::core::concat!(
            "expected extension words: `ext[N] = value`, or `NAME = value` with a name that the event type gives to a word, found `",
            ::core::stringify!($($other)+),
            "`"
        ));
    };
}

/// Makes a scope that sets a named extension word. The events that the calling thread records carry the word until the
/// scope is dropped.
///
/// ```
/// use eventring::{EventType, ext_scope, global::GlobalRecorder, record};
/// # use eventring::recorder::{ContentDescription, Recorder};
///
/// static SHOP: GlobalRecorder = GlobalRecorder::new("shop");
///
/// #[derive(EventType, Clone, Copy)]
/// #[event(content_type = 300, recorder = SHOP, ext(0 = order: seqno, 1 = line: index))]
/// #[repr(u16)]
/// enum Shop {
///     #[event(carries())]
///     OrderPlaced = 2,
///     LinePacked = 3,
/// }
/// # let _recorder = SHOP.override_with(Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().build()?);
///
/// let order = record!(Shop::OrderPlaced);
/// let _order = ext_scope!(Shop, order = order);
/// record!(Shop::LinePacked; line = 1); // carries the order, and the line that is given here
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// The value of the macro is an [`ExtScope`](crate::global::ExtScope); its docs have the rules. The enum names its
/// recorder (`#[event(recorder = …)]`) and the word (`#[event(ext(INDEX = NAME))]`). A name that the enum does not
/// have is a compile error. An event carries the words of all scopes, unless `#[event(carries(…))]` on its variant
/// lists the words that it carries.
#[macro_export]
macro_rules! ext_scope {
    ($events:ty, $word:ident = $value:expr $(,)?) => {
        $crate::global::ExtScope::set::<$events>(
            $crate::__private::index::<{ $crate::__private::scope_word::<$events>(::core::stringify!($word)) }>(),
            $value,
        )
    };
}

/// Functions for the code that the macros expand to.
#[doc(hidden)]
pub mod support {
    #[cfg(feature = "tracing")]
    pub use crate::tracing::for_macros::*;

    use super::{EventPayload, EventType, PayloadOf, RecordsTo};
    use crate::global::{ActiveRecorder, identity};
    use crate::recorder::Recorder;

    /// A recorder that the macro call names, as in `record!(recorder => …)`. The type has the methods of
    /// [`ActiveRecorder`] that the macros use.
    pub struct Own<'r>(&'r Recorder);

    impl<'r> Own<'r> {
        /// Returns the recorder.
        #[inline(always)]
        pub fn recorder(&self) -> &'r Recorder {
            self.0
        }
    }

    /// Returns `Some` if the recorder is on.
    #[inline(always)]
    pub fn own(recorder: &Recorder) -> Option<Own<'_>> {
        recorder.is_enabled().then_some(Own(recorder))
    }

    /// Returns the bit of the event's domain, or all bits if the event belongs to no domain.
    pub const fn domain<E: EventType>(_: E, code: u16) -> u64 {
        E::INFO.domain_bit(code)
    }

    /// Returns `Some` if the recorder is on, records the domain with the bit `DOMAIN`, and its ring takes events of
    /// this type. If the recorder would record the event but its ring takes other events, the recorder counts the event
    /// as refused. This costs one comparison more than [`own`].
    #[inline(always)]
    pub fn own_for<'r, const DOMAIN: u64, E: EventType>(recorder: &'r Recorder, _: &E) -> Option<Own<'r>> {
        let own = recorder.is_domain_enabled(DOMAIN).then_some(Own(recorder))?;
        if recorder.takes(identity::<E>()) {
            return Some(own);
        }
        recorder.refuse_event();
        None
    }

    /// Returns the index of the extension word that the event's schema calls `name`.
    ///
    /// # Panics
    /// At compile time, if no word has this name.
    pub const fn word<E: EventType>(_: &E, name: &str) -> usize {
        match E::INFO.ext_words.index_of(name) {
            Some(index) => index,
            None => {
                panic!("the event type gives no extension word this name: `#[event(ext(INDEX = NAME))]` on the enum")
            }
        }
    }

    /// Returns `INDEX`. The compiler computes a const parameter while it checks types. So `cargo check` already shows
    /// an error in the computation of `INDEX`.
    #[inline(always)]
    pub const fn index<const INDEX: usize>() -> usize {
        INDEX
    }

    /// Returns the index of the extension word that the schema calls `name`, for a scope that will set the word.
    ///
    /// # Panics
    /// At compile time, if no word has this name, or if the word holds the current span. No scope can set the word of
    /// the span.
    pub const fn scope_word<E: RecordsTo>(name: &str) -> usize {
        let words = &E::INFO.ext_words;
        match words.index_of(name) {
            Some(index) if words.own_bits() >> index & 1 == 1 => index,
            Some(_) => panic!("`tracing` spans set the word `span`: enter a span"),
            None => {
                panic!("the event type gives no extension word this name: `#[event(ext(INDEX = NAME))]` on the enum")
            }
        }
    }

    /// Returns the recorder that is installed in the global recorder of the event's type. Returns `None` if an event
    /// of this type cannot be recorded now.
    #[inline(always)]
    pub fn active_for<const DOMAIN: u64, E: RecordsTo>(_: &E) -> Option<ActiveRecorder> {
        E::global_recorder().active_in::<E>(DOMAIN)
    }

    /// Returns the extension words of an event for a call that names a recorder: the word of the span, and 0 for the
    /// other words.
    #[inline(always)]
    pub fn span_ext<E: EventType>(_: &E) -> [u64; 4] {
        crate::global::span_ext::<E>()
    }

    /// Returns the extension words of an event that goes to its global recorder: the words of scopes and the word of
    /// the span.
    #[inline(always)]
    pub fn default_ext<E: RecordsTo>(event: E) -> [u64; 4] {
        event.default_ext()
    }

    /// A payload in a macro call. The call may give it by value or by reference.
    pub trait PayloadReference: EventPayload {
        /// Returns the payload.
        #[inline(always)]
        fn payload_reference(&self) -> &Self {
            self
        }
    }

    impl<P: EventPayload> PayloadReference for P {}

    /// Returns `code`, the code of an event that is recorded without trailing arrays.
    ///
    /// # Panics
    /// At compile time, if the event has trailing arrays.
    pub const fn fixed<E: EventType>(_: E, code: u16, _: usize) -> u16 {
        assert!(
            !has_trailing_arrays::<E>(code),
            "this event has trailing arrays: give them with `recordv!(EVENT, &payload, [bytes, …])`"
        );
        code
    }

    /// Returns `code`, the code of an event that is recorded with `parts` slices after its fixed struct.
    ///
    /// # Panics
    /// At compile time, if there are slices although the event has no trailing arrays.
    pub const fn gathered<E: EventType>(_: E, code: u16, parts: usize) -> u16 {
        assert!(
            parts == 0 || has_trailing_arrays::<E>(code),
            "this event has no trailing arrays: record it with `record!(EVENT, &payload)`, or declare them: `#[event(trailing(…))]`"
        );
        code
    }

    const fn has_trailing_arrays<E: EventType>(code: u16) -> bool {
        let events = E::INFO.events;
        let mut index = 0;
        while index < events.len() {
            if events[index].code == code {
                return !events[index].trailing.is_empty();
            }
            index += 1;
        }
        false
    }

    /// Largest number of buffers, the fixed struct included, that are listed in an array on the stack. A longer list
    /// needs an allocation.
    const GATHERED_MAX: usize = 16;

    /// An event with its code. The macros call a method of this type and pass the payload as an argument. So the
    /// compiler knows the type of the event before it checks the payload, and a wrong payload gives an error message
    /// about the payload.
    pub struct Coded<const CODE: u16, E>(pub E);

    impl<const CODE: u16, E: EventType> Coded<CODE, E> {
        /// Encodes and records `payload`, followed by `parts`.
        #[inline(always)]
        pub fn record<P: PayloadOf<E, CODE>>(
            self,
            recorder: &Recorder,
            payload: &P,
            content_ext: [u64; 4],
            parts: &[&[u8]],
        ) -> u64 {
            payload.with_bytes(|fixed| {
                if parts.is_empty() {
                    return recorder.record(CODE, content_ext, fixed);
                }
                if parts.len() >= GATHERED_MAX {
                    let all: Vec<&[u8]> = std::iter::once(fixed).chain(parts.iter().copied()).collect();
                    return recorder.recordv(CODE, content_ext, &all);
                }
                let mut all: arrayvec::ArrayVec<&[u8], GATHERED_MAX> = arrayvec::ArrayVec::new();
                all.push(fixed);
                all.extend(parts.iter().copied());
                recorder.recordv(CODE, content_ext, &all)
            })
        }
    }
}
