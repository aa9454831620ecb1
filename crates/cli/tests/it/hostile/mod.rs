pub mod bytes;
mod inputs;
mod live;
