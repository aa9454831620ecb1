//! Tests of the tables for people.
