//! Verbs that show a recording in another form. (`view` has its folder beside `verbs/`.)

pub(crate) mod export;
pub(crate) mod report;
