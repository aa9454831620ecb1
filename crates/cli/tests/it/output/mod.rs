mod directory;
mod files;
mod help;
mod planted;
