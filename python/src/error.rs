//! Errors as Python exceptions. Their messages are those of the library.

use eventring::reader::{ReaderError, ReaderErrorKind};
use eventring_capture::{CaptureError, CaptureErrorKind};
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyPermissionError};
use pyo3::{PyErr, create_exception};

create_exception!(eventring, EventringError, PyException, "A ring or a capture cannot be read. The message says why.");

pub(crate) fn of_capture(error: CaptureError) -> PyErr {
    match error.kind() {
        CaptureErrorKind::NotFound => PyFileNotFoundError::new_err(error.to_string()),
        CaptureErrorKind::PermissionDenied => PyPermissionError::new_err(error.to_string()),
        _ => EventringError::new_err(error.to_string()),
    }
}

pub(crate) fn of_ring(error: ReaderError) -> PyErr {
    match error.kind() {
        ReaderErrorKind::NotFound => PyFileNotFoundError::new_err(error.to_string()),
        ReaderErrorKind::PermissionDenied => PyPermissionError::new_err(error.to_string()),
        _ => EventringError::new_err(error.to_string()),
    }
}
