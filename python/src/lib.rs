//! The native part of the Python package `eventring`: rings and captures as Arrow tables.
//!
//! | file | idea |
//! |---|---|
//! | `table` | a table, which any Arrow library imports without copying |
//! | `recording` | the tables of a capture, or of the events that rings hold now |
//! | `tail` | the tables of live rings, batch by batch |
//! | `account` | counts of events and of losses |
//! | `interrupt` | interrupting long work by Ctrl-C |
//! | `error` | errors as Python exceptions |

mod account;
mod error;
mod interrupt;
mod recording;
mod table;
mod tail;

use pyo3::prelude::*;

/// The module `eventring._eventring`.
#[pymodule]
fn _eventring(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("EventringError", module.py().get_type::<error::EventringError>())?;
    module.add_class::<table::Table>()?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<tail::Rings>()?;
    module.add_class::<tail::Tail>()?;
    module.add_function(wrap_pyfunction!(recording::read, module)?)?;
    module.add_function(wrap_pyfunction!(tail::open, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
