mod directory;
mod files;
mod for_people;
mod help;
mod planted;
mod same_each_time;
mod shared_names;
mod words;
