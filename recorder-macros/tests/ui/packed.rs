use eventring::schema::{EventPayload, PayloadField};

#[derive(EventPayload)]
#[repr(C, packed)]
struct Packed {
    id: u8,
    price: u64,
}

#[derive(EventPayload)]
#[repr(packed(2))]
struct PackedTo2 {
    id: u8,
    price: u64,
}

#[derive(PayloadField)]
#[repr(packed)]
struct Price(u64);

fn main() {}
