//! Reports about captures: the page about one capture, comparisons of captures, and the page about two.
//!
//! | folder | idea |
//! |---|---|
//! | `page/` | the page about one capture |
//! | `compare/` | two sides of captures, span by span |
//! | `changes/` | the page about two captures |

#![forbid(unsafe_code)]

pub mod changes;
pub mod compare;
pub mod page;
