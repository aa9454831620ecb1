//! The program `eventring`, run as its users run it, by verbs.

mod babeltrace;
mod blocks;
mod broker;
mod capture;
mod certificates;
mod compare;
mod consumers;
mod control;
mod counted;
mod every_kind;
mod export;
mod forward;
mod hostile;
mod http;
mod icount;
mod otlp;
mod output;
mod program;
mod qemu;
mod queries;
mod rings;
mod shop;
mod terminal;
mod triggers;
mod view;
mod watch;
