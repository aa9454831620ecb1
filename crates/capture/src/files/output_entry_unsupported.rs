//! The stand-in for systems other than Linux, on which no capture is written.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::read_files::ReadFiles;
use std::convert::Infallible;
use std::fs::File;
use std::marker::PhantomData;
use std::path::Path;

/// The directory entry of a file that is to be written. On this system, there can be no value of this type.
#[derive(Debug)]
pub struct OutputEntry(Infallible);

/// The answer of [`OutputEntry::look`].
#[derive(Debug)]
pub enum OutputKind {
    /// A file is to be made.
    File,
    /// A device or a pipe.
    Stream(File),
}

impl OutputEntry {
    /// Returns the error that this system has no event rings.
    ///
    /// # Errors
    /// Always.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Err(CaptureError::new(CaptureErrorKind::Unsupported, "captures need Linux").at(path))
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self.0 {}
    }

    /// Finds out what exists under the name.
    ///
    /// # Errors
    /// None.
    pub fn look(&self, _: bool, _: &ReadFiles) -> Result<OutputKind, CaptureError> {
        match self.0 {}
    }

    /// Checks that a rotated capture can be begun under the name.
    ///
    /// # Errors
    /// None.
    pub fn look_at_row(&self, _: bool, _: &ReadFiles) -> Result<(), CaptureError> {
        match self.0 {}
    }

    /// Opens the existing file.
    ///
    /// # Errors
    /// None.
    pub fn open_to_append(&self) -> Result<Option<File>, CaptureError> {
        match self.0 {}
    }

    /// Locks a file.
    ///
    /// # Errors
    /// None.
    pub fn lock(&self, _: File) -> Result<File, CaptureError> {
        match self.0 {}
    }

    pub(crate) fn check_no_stream(&self) -> Result<(), CaptureError> {
        match self.0 {}
    }

    /// Makes an empty file.
    ///
    /// # Errors
    /// None.
    pub fn create(&self, _: bool, _: &ReadFiles) -> Result<File, CaptureError> {
        match self.0 {}
    }

    /// Makes a file that has another name until it is published.
    ///
    /// # Errors
    /// None.
    pub fn create_unfinished(&self) -> Result<UnfinishedFile<'_>, CaptureError> {
        match self.0 {}
    }
}

/// A file that is not published yet. On this system, there can be no value of this type.
#[derive(Debug)]
pub struct UnfinishedFile<'p> {
    never: Infallible,
    entry: PhantomData<&'p OutputEntry>,
}

impl UnfinishedFile<'_> {
    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &File {
        match self.never {}
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// None.
    pub fn publish(self, _: bool, _: &ReadFiles) -> Result<(), CaptureError> {
        match self.never {}
    }
}
