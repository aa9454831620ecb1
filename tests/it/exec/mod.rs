mod block_table;
mod block_table_killed;
mod kept_snapshot;
mod real_events_are_recorded_again;
mod schema;
