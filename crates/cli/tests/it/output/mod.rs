mod directory;
mod files;
mod for_people;
mod full_disk;
pub(crate) mod help;
mod planted;
mod same_each_time;
mod shared_names;
mod words;
