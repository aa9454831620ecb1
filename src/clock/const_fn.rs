//! What is made in constants, except in models.

/// A function that is `const` where atomics can be made in constants: everywhere but in models.
macro_rules! const_except_in_models {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($parameter:tt)*) -> $result:ty $body:block) => {
        #[cfg(not(any(loom, shuttle)))]
        $(#[$meta])*
        $vis const fn $name($($parameter)*) -> $result $body

        #[cfg(any(loom, shuttle))]
        $(#[$meta])*
        $vis fn $name($($parameter)*) -> $result $body
    };
}
pub(super) use const_except_in_models;
