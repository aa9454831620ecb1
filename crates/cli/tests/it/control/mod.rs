mod addresses;
mod hostile_servers;
mod later_rings;
mod levels;
mod serve;
