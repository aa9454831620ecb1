//! The derives use no name from the module that uses them.
#![no_implicit_prelude]
#![deny(warnings)]

/// Names that the module defines itself. The generated code must not use them in place of the standard ones.
#[allow(dead_code)]
mod shadows {
    #[allow(non_camel_case_types)]
    pub struct u8;
    #[allow(non_camel_case_types)]
    pub struct usize;
    pub struct Result;
    pub struct Option;
    pub struct Self_;
}
#[allow(unused_imports)]
use shadows::*;

const LAYOUT: ::core::primitive::usize = 3;

#[derive(::eventring::schema::PayloadField, ::core::clone::Clone, ::core::marker::Copy)]
#[repr(i16)]
enum Side {
    #[event(alias = "BOUGHT")]
    Buy = -1,
    Sell = 1,
}

#[derive(::eventring::schema::PayloadField)]
struct OrderId(::core::primitive::u64);

#[derive(::eventring::schema::EventPayload)]
struct Order {
    r#type: Side,
    id: OrderId,
    bytes: [::core::primitive::u8; LAYOUT],
    #[event(alias = "failed", alias = "is_bad", default)]
    error: ::core::primitive::bool,
    #[event(default = LAYOUT as ::core::primitive::u32)]
    out: ::core::primitive::u32,
}

#[derive(::eventring::schema::EventPayload)]
struct Empty {}

static SLOT: ::eventring::global::GlobalRecorder = ::eventring::global::GlobalRecorder::new("slot");

#[derive(::eventring::schema::EventType, ::core::clone::Clone, ::core::marker::Copy)]
#[event(content_type = 300, recorder = SLOT, ext(0 = r#type: seqno, 1 = f), payloads(AnyPayload))]
#[repr(u16)]
enum Shop {
    #[event(payload = Order, alias = "ORDERED", trailing(#[event(alias = "flags", default)] bits: ::core::primitive::bool * out))]
    OrderPlaced = 0x10,
    #[event(payload = Empty, carries(f))]
    DayEnded = 3,
    #[event(trailing(payload: ::core::primitive::u32))]
    Numbered = 5,
    #[event(trailing(text: ::eventring::schema::Utf8))]
    r#Try = 4,
    RecordError = 1,
}

fn main() {
    use ::eventring::schema::{EventPayload, EventType};
    let order = Order { r#type: Side::Buy, id: OrderId(5), bytes: [1, 2, 3], error: true, out: 0 };
    let bytes = order.with_bytes(|bytes| <[::core::primitive::u8]>::to_vec(bytes));
    ::std::assert_eq!(bytes, [255, 255, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 1, 0, 0, 0, 0]);
    ::std::assert!(::core::matches!(Order::decode_exact(&bytes), ::core::result::Result::Ok(_)));
    ::std::assert_eq!((Shop::OrderPlaced.code(), Shop::Try.name()), (16, "TRY"));
    ::std::assert_eq!((Empty {}).with_bytes(<[::core::primitive::u8]>::len), 0);
    ::std::assert!(OrderPlacedView::decode(&bytes).is_ok_and(|view| view.bits.is_empty() && view.fixed.error));
    ::std::assert!(::core::matches!(Shop::Try.decode(b"text"), ::core::result::Result::Ok(AnyPayload::Try(view)) if view.text.to_text() == "text"));
    let _word = ::eventring::ext_scope!(Shop, f = 7);
    let _ = (Side::Sell, Shop::DayEnded, Shop::RecordError, order.r#type, order.id.0, order.bytes, order.error, order.out);
}
