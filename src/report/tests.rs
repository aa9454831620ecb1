//! Reports about small captures.
