//! The macros of `eventring::log`.

/// What the macros of [`log`](crate::log) expand to, after their fields have been taken apart.
#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ([$target:expr, $level:expr] [$($field:expr,)*] $values:tt) => {{
        let __eventring_site = $crate::__macro_site!(
            EVENT, name: $crate::__event_name!(), target: $target, level: $level, fields: &[$($field,)*]
        );
        if !__eventring_site.is_off() {
            $crate::__private::log(__eventring_site, &$values);
        }
    }};
    (
        [$target:expr, $level:expr, $format:expr, { $($checked:tt)* }, $references:expr, $args:ident]
        [$($field:expr,)*] $values:tt
    ) => {{
        let __eventring_site = $crate::__macro_site!(
            EVENT, name: ::core::concat!($crate::__event_name!(), "\0", $format), target: $target, level: $level,
            fields: &[$($field,)*]
        );
        // Both have the arguments, and an argument may consume a value: so only one of them can run.
        if false {
            $($checked)*
        } else if !__eventring_site.is_off() {
            use $crate::__private::{ArgAsIs as _, ArgFormatted as _};
            // The arguments live as long as the call, and temporaries among them end with it.
            match $references {
                $args => $crate::__private::log(__eventring_site, &$values),
            };
        }
    }};
}

/// The name of a log record's call site, as `tracing` makes it.
#[doc(hidden)]
#[macro_export]
macro_rules! __event_name {
    () => {
        ::core::concat!("event ", ::core::file!(), ":", ::core::line!())
    };
}

/// Records a log record of the level ERROR. The [module](crate::log) has the syntax.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_error {
    ($($call:tt)*) => {
        $crate::__private::__log_text!($crate::tracing::Level::ERROR, $($call)*)
    };
}

/// Records a log record of the level WARN. The [module](crate::log) has the syntax.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_warn {
    ($($call:tt)*) => {
        $crate::__private::__log_text!($crate::tracing::Level::WARN, $($call)*)
    };
}

/// Records a log record of the level INFO. The [module](crate::log) has the syntax.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_info {
    ($($call:tt)*) => {
        $crate::__private::__log_text!($crate::tracing::Level::INFO, $($call)*)
    };
}

/// Records a log record of the level DEBUG. The [module](crate::log) has the syntax.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_debug {
    ($($call:tt)*) => {
        $crate::__private::__log_text!($crate::tracing::Level::DEBUG, $($call)*)
    };
}

/// Records a log record of the level TRACE. The [module](crate::log) has the syntax.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_trace {
    ($($call:tt)*) => {
        $crate::__private::__log_text!($crate::tracing::Level::TRACE, $($call)*)
    };
}
