//! The content of recordings as rows: one struct for each kind of row, with its columns.
//!
//! JSON lines and tables (Parquet, Arrow, Python) are made from these rows, so a column has the same name and value in
//! each format. A row passes its columns to a [`Columns`], which writes each [`Cell`].

mod cell;
mod log;
mod loss;
mod ring;
mod sample;
mod span;
mod typed;

pub use cell::{Cell, Column, Columns, InJson, Row, RowFields, RowSite, TypedPayload, TypedWords};
pub use log::LogRow;
pub use loss::LossRow;
pub use ring::RingRow;
pub use sample::{SampleKind, SampleRow};
pub use span::SpanRow;
pub use typed::TypedRow;

/// Declares a row: each field is a column of the same name. `=> KIND` is the kind of its cells, and `[WHEN]` says when a
/// JSON line has it, if not always.
macro_rules! row {
    (@when) => { $crate::rows::InJson::Always };
    (@when $when:ident) => { $crate::rows::InJson::$when };
    (
        $(#[$of_row:meta])*
        pub struct $Name:ident<'a> {
            $($(#[$of_field:meta])* $field:ident: $Type:ty => $Kind:ident $([$when:ident])?,)*
        }
    ) => {
        $(#[$of_row])*
        #[derive(Clone, Default)]
        pub struct $Name<'a> {
            $($(#[$of_field])* pub $field: $Type,)*
        }

        impl $crate::rows::Row for $Name<'_> {
            #[inline]
            fn put_columns(&self, to: &mut impl $crate::rows::Columns) -> std::io::Result<()> {
                $(
                    let column = $crate::rows::Column { name: stringify!($field), in_json: row!(@when $($when)?) };
                    to.put(column, $crate::rows::Cell::$Kind(self.$field.clone().into()))?;
                )*
                Ok(())
            }
        }
    };
}
use row;
