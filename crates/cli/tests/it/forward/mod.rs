mod filters;
mod kills;
mod nats;
mod open_spans;
mod receive;
mod security;
mod troubles;
