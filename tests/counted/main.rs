//! Tests of a program whose allocator counts: `eventring::alloc::Counted`.

mod exact;
#[path = "../fixtures.rs"]
mod fixtures;
mod live;
#[path = "../spans.rs"]
mod spans;
mod truth;

eventring_stress::names_lead_nowhere!();

use eventring::alloc::Counted;

#[global_allocator]
static ALLOCATOR: Counted<truth::Truth> = Counted::with_live_bytes(truth::Truth);
