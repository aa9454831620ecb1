//! The arguments of a text. `read/text/value.rs` decodes them.

use crate::schema::perf::ArgKind;
use std::borrow::Cow;
use std::fmt;

/// What takes the bytes of arguments. What does not fit is dropped, and the text is then formatted by the program.
pub trait ArgSink {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);
    /// Appends a text with its length.
    fn put_text(&mut self, kind: u8, text: &str);
    /// Appends a text that `write` formats, with its length.
    fn put_formatted(&mut self, write: &mut dyn FnMut(&mut dyn fmt::Write) -> fmt::Result);
}

/// A type whose values a log macro records as they are: numbers, truth values, characters, texts, and options and
/// slices of these, up to 16 deep. Values of other types are formatted by the program, into the ring.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not stored as an argument of a text as it is",
    note = "if its type follows from a later line, name the type before the call, as in `let names: Vec<Name> = Vec::new();`: then the argument is formatted"
)]
pub trait LogValue {
    /// How deep options and slices are nested in it: `()` for not at all, and `(D,)` for one deeper than `D`.
    #[doc(hidden)]
    type Depth;
    /// Appends the value.
    #[doc(hidden)]
    fn put(&self, out: &mut impl ArgSink);
}

/// A depth that is at most `D`. The compiler counts, so a value that is too deep for readers is formatted.
pub trait AtMost<D> {}

impl<D> AtMost<D> for () {}
impl<D, T: AtMost<D>> AtMost<(D,)> for (T,) {}

/// Four deeper than `D`.
type FourIn<D> = ((((D,),),),);
/// As deep as readers go.
pub type Deepest = FourIn<FourIn<FourIn<FourIn<()>>>>;

macro_rules! log_number {
    ($($ty:ty as $wide:ty => $kind:ident),* $(,)?) => {
        $(impl LogValue for $ty {
            type Depth = ();

            #[inline(always)]
            fn put(&self, out: &mut impl ArgSink) {
                // The kind and the number are appended together: each append waits for the one before.
                let mut bytes = [ArgKind::$kind as u8; 1 + size_of::<$wide>()];
                bytes[1..].copy_from_slice(&(*self as $wide).to_le_bytes());
                out.put(&bytes);
            }
        })*
    };
}

// No machine has more than 64 bits.
log_number! {
    i8 as i8 => I8, i16 as i16 => I16, i32 as i32 => I32, i64 as i64 => I64, i128 as i128 => I128, isize as i64 => I64,
    u8 as u8 => U8, u16 as u16 => U16, u32 as u32 => U32, u64 as u64 => U64, u128 as u128 => U128, usize as u64 => U64,
    f32 as f32 => F32, f64 as f64 => F64, char as u32 => Char, bool as u8 => Bool,
}

macro_rules! log_text {
    ($($ty:ty),*) => {
        $(impl LogValue for $ty {
            type Depth = ();

            #[inline(always)]
            fn put(&self, out: &mut impl ArgSink) {
                out.put_text(ArgKind::Str as u8, self);
            }
        })*
    };
}

log_text!(str, String, Cow<'_, str>, Box<str>);

impl<T: LogValue + ?Sized> LogValue for &T {
    type Depth = T::Depth;

    #[inline(always)]
    fn put(&self, out: &mut impl ArgSink) {
        (**self).put(out);
    }
}

impl<T: LogValue + ?Sized> LogValue for &mut T {
    type Depth = T::Depth;

    #[inline(always)]
    fn put(&self, out: &mut impl ArgSink) {
        (**self).put(out);
    }
}

impl<T: LogValue> LogValue for Option<T> {
    type Depth = (T::Depth,);

    #[inline(always)]
    fn put(&self, out: &mut impl ArgSink) {
        match self {
            None => out.put(&[ArgKind::None as u8]),
            Some(value) => {
                out.put(&[ArgKind::Some as u8]);
                value.put(out);
            }
        }
    }
}

impl<T: LogValue> LogValue for [T] {
    type Depth = (T::Depth,);

    fn put(&self, out: &mut impl ArgSink) {
        // More values than this do not fit, because there is no such buffer.
        let [low, high] = u16::try_from(self.len()).unwrap_or(u16::MAX).to_le_bytes();
        out.put(&[ArgKind::Slice as u8, low, high]);
        self.iter().for_each(|value| value.put(out));
    }
}

impl<T: LogValue, const N: usize> LogValue for [T; N] {
    type Depth = (T::Depth,);

    fn put(&self, out: &mut impl ArgSink) {
        self.as_slice().put(out);
    }
}

impl<T: LogValue> LogValue for Vec<T> {
    type Depth = (T::Depth,);

    fn put(&self, out: &mut impl ArgSink) {
        self.as_slice().put(out);
    }
}

/// An argument of a text.
pub trait LogArg {
    /// Appends the argument.
    fn put_arg(&self, out: &mut impl ArgSink);
}

impl<T: LogValue + ?Sized> LogArg for &T {
    #[inline(always)]
    fn put_arg(&self, out: &mut impl ArgSink) {
        self.put(out);
    }
}

/// An argument that the program formats.
#[derive(Debug)]
pub struct FormattedArg<F>(pub F);

impl<F: Fn(&mut dyn fmt::Write) -> fmt::Result> LogArg for FormattedArg<F> {
    fn put_arg(&self, out: &mut impl ArgSink) {
        out.put_formatted(&mut |text| (self.0)(text));
    }
}

/// An argument of any type: as it is if [`LogValue`] has its type and readers go as deep, and otherwise formatted. The
/// compiler chooses: it looks for a method of `&ArgOf` before one of `&&ArgOf`.
#[derive(Debug)]
pub struct ArgOf<'v, T: ?Sized>(pub &'v T);

/// The choice of an argument as it is.
pub trait ArgAsIs<F> {
    /// The argument.
    type Arg;
    /// Returns the argument. `format` would format it.
    fn __eventring_arg(&self, format: F) -> Self::Arg;
}

impl<'v, T: LogValue<Depth: AtMost<Deepest>> + ?Sized, F> ArgAsIs<F> for ArgOf<'v, T> {
    type Arg = &'v T;

    #[inline(always)]
    fn __eventring_arg(&self, _: F) -> &'v T {
        self.0
    }
}

/// The choice of a formatted argument.
pub trait ArgFormatted<F> {
    /// The argument.
    type Arg;
    /// Returns the argument. `format` formats it.
    fn __eventring_arg(&self, format: F) -> Self::Arg;
}

impl<T: ?Sized, F: Fn(&mut dyn fmt::Write) -> fmt::Result> ArgFormatted<F> for &ArgOf<'_, T> {
    type Arg = FormattedArg<F>;

    #[inline(always)]
    fn __eventring_arg(&self, format: F) -> FormattedArg<F> {
        FormattedArg(format)
    }
}

/// The arguments of a text, as nested pairs `(first, (second, ()))`.
pub trait LogArgs {
    /// Appends the arguments.
    fn put_all(&self, out: &mut impl ArgSink);
}

impl LogArgs for () {
    #[inline(always)]
    fn put_all(&self, _: &mut impl ArgSink) {}
}

impl<A: LogArg, R: LogArgs> LogArgs for (A, R) {
    #[inline(always)]
    fn put_all(&self, out: &mut impl ArgSink) {
        self.0.put_arg(out);
        self.1.put_all(out);
    }
}
