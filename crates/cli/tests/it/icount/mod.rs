mod guests;
mod signals;
mod verb;
