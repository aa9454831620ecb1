//! Calls that `tracing`'s macros take, too, and names of the program that are no names of the macros.
#![deny(warnings)]
#![allow(dead_code, non_upper_case_globals)]

use eventring::{log, scope, scoped};
use std::num::{NonZero, Wrapping};

const META: &str = "meta";
const SITE: &str = "site";
static _scope: u8 = 1;
static text: u8 = 2;
static f: u8 = 3;

trait Recorded {
    fn recorded(&self) {}
}

impl<T: ?Sized> Recorded for T {}

#[scoped]
fn parameters(_eventring_scope: u8, __eventring_scope: u8) -> u8 {
    _eventring_scope.recorded();
    _eventring_scope + __eventring_scope
}

#[scoped(level = <Names<u8, u8>>::LEVEL, target = Names::<u8, u8>::TARGET)]
fn generic_names() {}

struct Names<A, B>(A, B);

impl<A, B> Names<A, B> {
    const LEVEL: eventring::tracing::Level = eventring::tracing::Level::INFO;
    const TARGET: &str = "target";
}

fn main() {
    log::info!(target: SITE, "{text} {}", f);
    let _guard = scope!(META);
    let _guard = scope!(target: SITE, META);
    let y = &mut 3_u8;
    log::info!(y, wrapping = Wrapping(1), non_zero = NonZero::new(1_u8), bytes = b"ab", "text {y}");
    let error: Box<dyn std::error::Error + Send> = Box::new(std::fmt::Error);
    log::info!(error, "text");
    let _guard = scope!("fields", y, bytes = b"ab", wrapping = Wrapping(1_i128));
    assert_eq!(parameters(1, 2), 3);
    generic_names();
}
