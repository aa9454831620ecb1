//! The program `eventring`, run as its users run it, by verbs.

#[macro_use]
mod words;

mod allocations;
mod ask;
mod babeltrace;
mod blocks;
mod broker;
mod capture;
mod certificates;
mod checks;
mod compare;
mod consumers;
mod context;
mod control;
mod cores;
mod counted;
mod every_kind;
mod export;
mod find;
mod fixtures;
mod forward;
mod gateway;
mod gateway_latency;
mod gateway_limits;
mod hostile;
mod http;
mod icount;
mod locks;
mod oracle;
mod orders;
mod otlp;
mod output;
mod pages;
mod profile;
mod program;
mod qemu;
mod queries;
mod random_program;
mod rings;
mod shop;
mod special_files;
mod tasks;
mod terminal;
mod triggers;
mod view;
mod watch;
mod why;

eventring_stress::names_lead_nowhere!();
