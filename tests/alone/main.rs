//! Tests that change or count what a whole process has: each runs in a process of its own.

mod allocator;
mod clock_agrees_between_processes;
mod clock_stays_with_realtime;
mod death;
mod death_others;
mod death_writer;
mod domains_after_a_fork;
mod domains_are_switched_while_recording;
#[path = "../fixtures.rs"]
mod fixtures;
mod fork_child_makes_its_own_ring;
mod fork_child_records_nothing;
mod fork_with_the_parents_pid;
mod global_off_evaluates_nothing;
mod global_override;
#[cfg(target_arch = "x86_64")]
mod interrupted_everywhere;
mod log_macros;
mod record_within_the_allocator;
mod scopes;
mod scopes_beside_scoped_subscribers;
mod scopes_in_any_order;
mod scopes_in_stacks;
mod scopes_that_are_many;
mod scopes_while_stalled;
mod shm_modes;
#[path = "../spans.rs"]
mod spans;
mod stall;
mod stall_ring;
mod thread_time;
mod thread_time_places;
mod tracing_filter_is_asked_once;
mod tracing_fork;
mod tracing_global_and_scoped;
mod tracing_in_the_binary;
mod tracing_levels;
mod tracing_many_threads;
mod tracing_memory;
mod tracing_panicking_children;
mod tracing_switching;
mod values_that_record;

eventring_stress::names_lead_nowhere!();

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;
