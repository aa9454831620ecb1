//! Traces of small captures.
