//! Where the time of spans went, of captures that are made up.

mod why;
