//! The macros `record!`, `recordv!` and `ext_scope!`.

use crate::global::RecordsTo;
use crate::schema::{EventPayload, EventType, PayloadOf};

/// Records a typed event.
///
/// ```
/// use eventring::{record, schema::test::{TestCounter, TestEvent}};
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let my_recorder = Recorder::builder(ContentDescription::of::<TestEvent>()).anonymous().build()?;
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
/// The event is a path to a variant of an enum that derives [`EventType`]. Its payload is a reference or a value of the
/// struct that the enum names for it; the compiler checks this. An event without a struct has no payload.
///
/// Extension words come after `;`: `ext[N] = value`, or `NAME = value` with a name that the enum gives to a word
/// (`#[event(ext(INDEX = NAME))]`). Word 3 is `span`, unless the enum says `no_span`. An event has only four words,
/// which the compiler checks:
///
/// ```compile_fail,E0080
/// # use eventring::{record, schema::test::{TestCounter, TestEvent}};
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let my_recorder = Recorder::builder(ContentDescription::of::<TestEvent>()).anonymous().build().unwrap();
/// let counter = TestCounter { writer_id: 1, counter: 2 };
/// record!(my_recorder => TestEvent::TestCounter, &counter; ext[4] = 7);
/// ```
///
/// The event must be known at compile time, so that its payload can be checked. So the event must be a variant or a
/// `const`, not a variable. An event that is chosen at run time can be recorded by its code, with its payload as bytes:
///
/// ```
/// # use eventring::{record, schema::{EventPayload, EventType, test::{TestCounter, TestEvent}}};
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # let my_recorder = Recorder::builder(ContentDescription::of::<TestEvent>()).anonymous().build()?;
/// let counter = TestCounter { writer_id: 1, counter: 2 };
/// const EVENT: TestEvent = TestEvent::TestCounter;
/// record!(my_recorder => EVENT, &counter);
/// let event = if counter.counter == 2 { TestEvent::TestCounter } else { TestEvent::RecordError };
/// counter.with_bytes(|bytes| my_recorder.record(event.code(), [0; 4], bytes));
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// Inside a span that the feature `tracing` records, word 3 is the span's id, unless the call gives the word or the
/// enum says `#[event(no_span)]`.
///
/// While the recorder is off, a call costs one relaxed load and a branch: neither payload nor extension words are
/// evaluated.
///
/// A ring holds events of one schema. If the recorder's ring has another content type or schema hash than the event's
/// enum, nothing is evaluated or recorded. Such an event is counted in
/// [`RecorderStats::foreign_events`](crate::recorder::RecorderStats::foreign_events), which `eventring info` shows. A
/// recorder whose description states no schema hash takes every event of its content type.
///
/// The value of the macro is the event's seqno, or 0 if nothing was recorded.
#[macro_export]
macro_rules! record {
    ($recorder:expr => $event:path $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!(($crate::__private::own_for(&$recorder, &$event), $crate::__private::span_ext(&$event)) $event, &(), fixed [], $($($ext)*)?)
    };
    ($recorder:expr => $event:path, $payload:expr $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!(($crate::__private::own_for(&$recorder, &$event), $crate::__private::span_ext(&$event)) $event, $payload, fixed [], $($($ext)*)?)
    };
    ($event:path $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!(($crate::__private::active_for(&$event), $crate::__private::default_ext($event)) $event, &(), fixed [], $($($ext)*)?)
    };
    ($event:path, $payload:expr $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!(($crate::__private::active_for(&$event), $crate::__private::default_ext($event)) $event, $payload, fixed [], $($($ext)*)?)
    };
}

/// Records a typed event with trailing arrays: a fixed struct, followed by slices of bytes in order.
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
/// # let recorder = Recorder::builder(ContentDescription::of::<Shop>()).anonymous().build()?;
///
/// let orders = eventring::schema::encode_array(&[17u64, 18]);
/// recordv!(recorder => Shop::BatchPlaced, &Batch { order_count: 2 }, [&orders, b"in a hurry"]; customer = 7);
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// In all other respects it is like [`record!`]. There are at most 15 slices. The compiler checks that an event has
/// slices only if it has trailing arrays. Nothing checks that the slices have as many elements as the counts in the
/// struct say.
///
/// A program that forwards events without knowing their types gives the code and the bytes instead. Then nothing is
/// checked:
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
                #[allow(unused_mut, reason = "without extension words nothing changes it")]
                let mut content_ext = [0; 4];
                $crate::__ext!(content_ext, raw, $($($ext)*)?);
                active.recorder().recordv($code, content_ext, &[$($part),*])
            }
            ::core::option::Option::None => 0,
        }
    };
    ($recorder:expr => $event:path, $payload:expr, [$($part:expr),* $(,)?] $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!(($crate::__private::own_for(&$recorder, &$event), $crate::__private::span_ext(&$event)) $event, $payload, gathered [$($part),*], $($($ext)*)?)
    };
    ($event:path, $payload:expr, [$($part:expr),* $(,)?] $(,)? $(; $($ext:tt)*)?) => {
        $crate::__record!(($crate::__private::active_for(&$event), $crate::__private::default_ext($event)) $event, $payload, gathered [$($part),*], $($($ext)*)?)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __record {
    (($active:expr, $default_ext:expr) $event:path, $payload:expr, $how:ident [$($part:expr),*], $($ext:tt)*) => {
        match $active {
            ::core::option::Option::Some(active) => {
                use $crate::__private::PayloadReference as _;
                #[allow(unused_mut, reason = "without extension words nothing changes it")]
                let mut content_ext = $default_ext;
                $crate::__ext!(content_ext, [$event], $($ext)*);
                // The code is an expression and not a named constant, because items are not hygienic: the constant
                // would hide a constant of the caller from the caller's expressions below.
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
    ($to:ident, $of:tt, ) => {};
    ($to:ident, $of:tt, ext[$index:expr] = $value:expr $(, $($rest:tt)*)?) => {
        const { ::core::assert!($index < 4usize, "an event has the extension words ext[0] to ext[3]") };
        $to[$index] = $value;
        $crate::__ext!($to, $of, $($($rest)*)?);
    };
    ($to:ident, [$event:path], $word:ident = $value:expr $(, $($rest:tt)*)?) => {
        $to[$crate::__private::index::<{ $crate::__private::word(&$event, ::core::stringify!($word)) }>()] = $value;
        $crate::__ext!($to, [$event], $($($rest)*)?);
    };
    ($to:ident, $of:tt, $($other:tt)+) => {
        ::core::compile_error!(::core::concat!(
            "expected extension words: `ext[N] = value`, or `NAME = value` with a name that the event type gives to a word, found `",
            ::core::stringify!($($other)+),
            "`"
        ));
    };
}

/// Sets a named extension word of the events that the calling thread records, until the scope is dropped.
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
/// # let _recorder = SHOP.override_with(Recorder::builder(ContentDescription::of::<Shop>()).anonymous().build()?);
///
/// let order = record!(Shop::OrderPlaced);
/// let _order = ext_scope!(Shop, order = order);
/// record!(Shop::LinePacked; line = 1); // carries the order, and the line that is given here
/// # Ok::<(), eventring::recorder::RecorderError>(())
/// ```
///
/// The value of the macro is an [`ExtScope`](crate::global::ExtScope), whose docs have the rules. The enum names its
/// recorder (`#[event(recorder = …)]`) and the word (`#[event(ext(INDEX = NAME))]`). A name that the enum does not have
/// is a compile error. An event carries all words, or the words that `#[event(carries(…))]` on its variant names.
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
    use super::{EventPayload, EventType, PayloadOf, RecordsTo};
    use crate::global::{ActiveRecorder, identity};
    use crate::recorder::Recorder;

    /// A recorder that the macro call names. It has the methods of [`ActiveRecorder`] that the macros use.
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

    /// Returns `Some` if the recorder is on and its ring was made for events of this type. This costs one comparison
    /// more than [`own`].
    #[inline(always)]
    pub fn own_for<'r, E: EventType>(recorder: &'r Recorder, _: &E) -> Option<Own<'r>> {
        let own = own(recorder)?;
        if recorder.takes(identity::<E>()) {
            return Some(own);
        }
        recorder.refuse_event();
        None
    }

    /// Returns the index of the word that the schema of an event calls `name`.
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

    /// Returns `INDEX`. As a const parameter the index is computed while types are checked, so that `cargo check` shows
    /// its errors.
    #[inline(always)]
    pub const fn index<const INDEX: usize>() -> usize {
        INDEX
    }

    /// Returns the index of the word that a scope can set and that the schema calls `name`.
    ///
    /// # Panics
    /// At compile time, if no word has this name, or if it is the word of the current span, which no scope can set.
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

    /// Returns the recorder that is installed in the global recorder of an event.
    #[inline(always)]
    pub fn active_for<E: RecordsTo>(_: &E) -> Option<ActiveRecorder> {
        E::global_recorder().active_for::<E>()
    }

    /// Returns the default extension words of an event whose call names a recorder. Only the word of the span is set.
    #[inline(always)]
    pub fn span_ext<E: EventType>(_: &E) -> [u64; 4] {
        crate::global::span_ext::<E>()
    }

    /// Returns the default extension words of an event that is recorded through its global recorder: the words of
    /// scopes and the word of the span.
    #[inline(always)]
    pub fn default_ext<E: RecordsTo>(event: E) -> [u64; 4] {
        event.default_ext()
    }

    /// A payload that the call gives by value or by reference.
    pub trait PayloadReference: EventPayload {
        /// Returns the payload.
        #[inline(always)]
        fn payload_reference(&self) -> &Self {
            self
        }
    }

    impl<P: EventPayload> PayloadReference for P {}

    /// Returns the code of an event that is recorded without trailing arrays.
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

    /// Returns the code of an event that is recorded with `parts` parts after its fixed struct.
    ///
    /// # Panics
    /// At compile time, if there are parts, and the event has no trailing arrays.
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

    /// Largest number of buffers of one payload, the fixed struct included. Their list is an array of this size, so
    /// that it needs no allocation.
    const GATHERED_MAX: usize = 16;

    /// An event with its code. The macros call a method of this type and pass the payload as an argument. The compiler
    /// thus knows the type of the event before it checks the payload, and a wrong payload gives an error message about
    /// the payload.
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
