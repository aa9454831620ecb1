//! Functions that are `const`, except in loom and shuttle models. The atomics of these model checkers cannot be created
//! in constants.

/// Defines a function that is `const`, except in models.
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
