//! Verbs that show a recording in another form.

pub(crate) mod export;
pub(crate) mod report;
#[cfg_attr(not(feature = "view"), path = "../left_out/view.rs")]
pub(crate) mod view;
