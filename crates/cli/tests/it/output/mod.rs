mod directory;
mod files;
mod full_disk;
pub(crate) mod help;
mod planted;
mod shared_names;
mod words;
