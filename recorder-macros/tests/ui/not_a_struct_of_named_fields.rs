//! Types that cannot be payload structs.
use eventring::schema::EventPayload;

#[derive(EventPayload)]
struct Pair(u32, u32);

#[derive(EventPayload)]
struct Nothing;

#[derive(EventPayload)]
enum Side {
    Buy,
    Sell,
}

#[derive(EventPayload)]
union Either {
    a: u32,
    b: f32,
}

fn main() {}
