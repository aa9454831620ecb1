//! A ring of events without a schema, for tests to which only their number matters.

use crate::fixtures::*;
use std::ffi::OsStr;

/// Makes a ring of orders that stays. It holds 65,536 of them.
pub fn orders_in(path: impl AsRef<OsStr>) -> Recorder {
    let builder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(path).compact(true);
    builder.shifts(16, 25).prefault(false).keep(true).build().unwrap()
}

/// Records orders.
pub fn order(orders: &Recorder, count: u64) {
    (0..count).for_each(|number| assert_ne!(orders.record(7, [number; 4], b"an order"), 0));
}

/// Makes a ring of so many orders that has ended.
pub fn ended_orders(path: impl AsRef<OsStr>, count: u64) {
    order(&orders_in(path), count);
}
