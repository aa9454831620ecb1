//! The macro `scope!`.

/// Begins a scope: a span of the calling thread that lasts until the returned guard is dropped.
///
/// ```
/// # eventring::tracing::PERF.install(eventring::tracing::PerfRecorder::builder().anonymous().build()?)?;
/// fn parse(bytes: &[u8]) -> usize {
///     let _scope = eventring::scope!("parse", bytes = bytes.len());
///     bytes.iter().filter(|byte| **byte == b'\n').count()
/// }
/// parse(b"one\ntwo\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A scope costs two readings of the clock and a few nanoseconds; a span of `tracing` costs four. It is recorded to
/// [`PERF`](crate::tracing::PERF), into the same rings as spans, and readers show it as they show spans. Its parent is
/// the span or scope that the thread is in, and spans that begin inside of it are its children.
///
/// Before the name, `target:` and `level:` may be given, in this order. The target is the module's path if it is not
/// given, and the level is `INFO`. The filters and filter overrides that decide about spans decide about scopes, too.
/// While a scope is not wanted, or nothing is recorded, a call costs a load and a branch, and its fields are not
/// evaluated.
///
/// Fields follow the name as in `tracing`'s macros: `field = value`, `field = ?value` for `Debug`, `field = %value` for
/// `Display`, and `value`, `?value` or `%value` for a variable of the field's name.
/// [`RecordedValue`](crate::tracing::RecordedValue) lists the types that need no `?` or `%`.
///
/// ```
/// use eventring::tracing::Level;
/// let (bytes, kind) = (17_u32, Some("text"));
/// let _scope = eventring::scope!(target: "parser", level: Level::DEBUG, "parse", bytes, kind = ?kind, of.whole = 0.5);
/// ```
///
/// The value is a [`Scope`](crate::tracing::Scope), which explains what becomes of a guard that is forgotten. A whole
/// function is a scope with [`#[eventring::scoped]`](macro@crate::scoped).
///
/// A scope belongs to one thread. So its guard must not be held over an `.await`:
///
/// ```compile_fail
/// fn must_be_send(_: impl Future + Send) {}
/// must_be_send(async {
///     let _scope = eventring::scope!("wait");
///     std::future::ready(()).await;
/// });
/// ```
#[macro_export]
macro_rules! scope {
    (target: $target:expr, level: $level:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::__fields!(($crate::__scope) [$target, $level, $name] [] () $($($fields)*)?)
    };
    (target: $target:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::scope!(target: $target, level: $crate::tracing::Level::INFO, $name $(, $($fields)*)?)
    };
    (level: $level:expr, $name:expr $(, $($fields:tt)*)?) => {
        $crate::scope!(target: ::core::module_path!(), level: $level, $name $(, $($fields)*)?)
    };
    ($name:expr $(, $($fields:tt)*)?) => {
        $crate::scope!(target: ::core::module_path!(), level: $crate::tracing::Level::INFO, $name $(, $($fields)*)?)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __scope {
    ([$target:expr, $level:expr, $name:expr] [] $values:tt) => {{
        let __eventring_site = $crate::__macro_site!(SPAN, name: $name, target: $target, level: $level, fields: &[]);
        if __eventring_site.is_off() { $crate::tracing::Scope::off() } else { $crate::tracing::Scope::begin(__eventring_site) }
    }};
    ([$target:expr, $level:expr, $name:expr] [$($field:expr,)+] $values:tt) => {{
        let __eventring_site = $crate::__macro_site!(SPAN, name: $name, target: $target, level: $level, fields: &[$($field,)+]);
        if __eventring_site.is_off() {
            $crate::tracing::Scope::off()
        } else {
            $crate::tracing::Scope::begin_with(__eventring_site, &$values)
        }
    }};
}

/// Takes the fields of a call apart, one by one. Then calls the macro that is given first, with what was given for it,
/// the names of the fields and their values.
#[doc(hidden)]
#[macro_export]
macro_rules! __fields {
    (($($then:tt)*) $given:tt $names:tt $values:tt $(,)?) => { $($then)*! { $given $names $values } };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $($name:ident).+ = ?$value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $crate::__field_name!($($name).+),] ($values, $crate::__private::debug(&$value)) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $($name:ident).+ = %$value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $crate::__field_name!($($name).+),] ($values, $crate::__private::display(&$value)) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $($name:ident).+ = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $crate::__field_name!($($name).+),] ($values, &$value) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $name:literal = ?$value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $name,] ($values, $crate::__private::debug(&$value)) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $name:literal = %$value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $name,] ($values, $crate::__private::display(&$value)) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $name:literal = $value:expr $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $name,] ($values, &$value) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt ?$($name:ident).+ $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $crate::__field_name!($($name).+),] ($values, $crate::__private::debug(&$($name).+)) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt %$($name:ident).+ $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $crate::__field_name!($($name).+),] ($values, $crate::__private::display(&$($name).+)) $($($rest)*)?)
    };
    ($then:tt $given:tt [$($names:tt)*] $values:tt $($name:ident).+ $(, $($rest:tt)*)?) => {
        $crate::__fields!($then $given [$($names)* $crate::__field_name!($($name).+),] ($values, &$($name).+) $($($rest)*)?)
    };
    ($then:tt $given:tt $names:tt $values:tt $($other:tt)+) => {
        ::core::compile_error!(::core::concat!(
            "expected fields, such as `bytes = 3`, `kind = ?kind` or `path = %path`, found `", ::core::stringify!($($other)+), "`"
        ));
    };
}

/// The name of a field, without the spaces that `stringify!` may put around dots.
#[doc(hidden)]
#[macro_export]
macro_rules! __field_name {
    ($first:ident $(. $more:ident)*) => {
        $crate::__private::field_name(::core::concat!(::core::stringify!($first) $(, ".", ::core::stringify!($more))*))
    };
}
