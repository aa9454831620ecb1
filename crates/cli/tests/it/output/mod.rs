mod demo;
mod directory;
mod files;
mod help;
mod planted;
mod soak;
