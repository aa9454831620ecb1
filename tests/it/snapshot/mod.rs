mod bad;
mod write;
