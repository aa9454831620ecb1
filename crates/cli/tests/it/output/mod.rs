mod directory;
mod files;
mod help;
mod planted;
mod shared_names;
mod words;
