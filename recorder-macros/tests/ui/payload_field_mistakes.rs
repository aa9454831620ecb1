//! Types that cannot be fields.
use eventring::schema::PayloadField;

#[derive(PayloadField)]
enum WithoutRepr {
    A,
}

#[derive(PayloadField)]
#[repr(u8)]
enum WithFields {
    A(u8),
}

#[derive(PayloadField)]
#[repr(u8)]
enum Empty {}

#[derive(PayloadField)]
struct Two(u8, u8);

#[derive(PayloadField)]
struct Text(String);

fn main() {}
