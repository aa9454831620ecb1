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
struct RedactedInside(#[event(redact)] u64);

#[derive(PayloadField)]
struct NamedInside(#[event(name = "Key")] u64);

#[derive(PayloadField)]
struct EmptyInside(#[event()] u64);

#[derive(PayloadField)]
#[event(redact)]
struct RedactedNewtype(u64);

#[derive(PayloadField)]
#[repr(u8)]
enum RedactedValue {
    #[event(redact)]
    A,
}

#[derive(PayloadField)]
struct Text(String);

fn main() {}
