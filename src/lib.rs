//! An embedded event recorder.
