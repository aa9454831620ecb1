pub(crate) mod collector;
mod open_spans;
mod rings;
mod tls;
mod troubles;
