//! Reports about captures: the page about one capture, comparisons of captures, and the page about two.
//!
//! | folder | idea |
//! |---|---|
//! | `page/` | the page about one capture |
//! | `compare/` | two sides of captures, span by span |
//! | `changes/` | the page about two captures |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

pub mod changes;
pub mod compare;
pub mod page;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
