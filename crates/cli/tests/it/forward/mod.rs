mod filters;
mod kills;
mod nats;
mod receive;
mod security;
mod troubles;
