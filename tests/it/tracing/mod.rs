mod any_sequence;
mod constant_texts;
mod context;
mod dispatchers;
mod fields;
mod filter;
mod init;
#[cfg(target_arch = "x86_64")]
mod otel_context;
mod panicking_values;
mod reentrancy;
mod short_lived_shards;
mod stress;
mod switched_off;
mod tables;
