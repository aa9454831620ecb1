//! Domains that a schema cannot have.
use eventring::schema::EventType;

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, domains)]
#[repr(u16)]
enum CodeWithoutDomain {
    #[event(domain = "orderbook")]
    Bid = 0x0100,
    #[event(domain = "prices")]
    Quoted = 0x0002,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, domains)]
#[repr(u16)]
enum Domain65 {
    #[event(domain = "orderbook")]
    Bid = 0x4000,
    #[event(domain = "prices")]
    Quoted = 0x4100,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, domains)]
#[repr(u16)]
enum WithoutName {
    #[event(domain = "orderbook")]
    Bid = 0x0100,
    Quoted = 0x0200,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, domains)]
#[repr(u16)]
enum TwoNames {
    #[event(domain = "orderbook")]
    Bid = 0x0100,
    #[event(domain = "prices")]
    Quoted = 0x0101,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, domains)]
#[repr(u16)]
enum NameTwice {
    #[event(domain = "orderbook")]
    Bid = 0x0100,
    #[event(domain = "orderbook")]
    Quoted = 0x0200,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum SomeWithout {
    #[event(domain = "orderbook")]
    Bid = 2,
    Quoted = 3,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum ReservedName {
    #[event(domain = "all")]
    Bid = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NoName {
    #[event(domain = "order book")]
    Bid = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum ErrorInDomain {
    #[event(domain = "orderbook")]
    RecordError = 1,
    #[event(domain = "orderbook")]
    Bid = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, domains = 2)]
#[repr(u16)]
enum WithValue {
    #[event(domain = "orderbook")]
    Bid = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum DomainsOfOneEvent {
    #[event(domain = "d0")]
    E0 = 2,
    #[event(domain = "d1")]
    E1 = 3,
    #[event(domain = "d2")]
    E2 = 4,
    #[event(domain = "d3")]
    E3 = 5,
    #[event(domain = "d4")]
    E4 = 6,
    #[event(domain = "d5")]
    E5 = 7,
    #[event(domain = "d6")]
    E6 = 8,
    #[event(domain = "d7")]
    E7 = 9,
    #[event(domain = "d8")]
    E8 = 10,
    #[event(domain = "d9")]
    E9 = 11,
    #[event(domain = "d10")]
    E10 = 12,
    #[event(domain = "d11")]
    E11 = 13,
    #[event(domain = "d12")]
    E12 = 14,
    #[event(domain = "d13")]
    E13 = 15,
    #[event(domain = "d14")]
    E14 = 16,
    #[event(domain = "d15")]
    E15 = 17,
    #[event(domain = "d16")]
    E16 = 18,
    #[event(domain = "d17")]
    E17 = 19,
    #[event(domain = "d18")]
    E18 = 20,
    #[event(domain = "d19")]
    E19 = 21,
    #[event(domain = "d20")]
    E20 = 22,
    #[event(domain = "d21")]
    E21 = 23,
    #[event(domain = "d22")]
    E22 = 24,
    #[event(domain = "d23")]
    E23 = 25,
    #[event(domain = "d24")]
    E24 = 26,
    #[event(domain = "d25")]
    E25 = 27,
    #[event(domain = "d26")]
    E26 = 28,
    #[event(domain = "d27")]
    E27 = 29,
    #[event(domain = "d28")]
    E28 = 30,
    #[event(domain = "d29")]
    E29 = 31,
    #[event(domain = "d30")]
    E30 = 32,
    #[event(domain = "d31")]
    E31 = 33,
    #[event(domain = "d32")]
    E32 = 34,
    #[event(domain = "d33")]
    E33 = 35,
    #[event(domain = "d34")]
    E34 = 36,
    #[event(domain = "d35")]
    E35 = 37,
    #[event(domain = "d36")]
    E36 = 38,
    #[event(domain = "d37")]
    E37 = 39,
    #[event(domain = "d38")]
    E38 = 40,
    #[event(domain = "d39")]
    E39 = 41,
    #[event(domain = "d40")]
    E40 = 42,
    #[event(domain = "d41")]
    E41 = 43,
    #[event(domain = "d42")]
    E42 = 44,
    #[event(domain = "d43")]
    E43 = 45,
    #[event(domain = "d44")]
    E44 = 46,
    #[event(domain = "d45")]
    E45 = 47,
    #[event(domain = "d46")]
    E46 = 48,
    #[event(domain = "d47")]
    E47 = 49,
    #[event(domain = "d48")]
    E48 = 50,
    #[event(domain = "d49")]
    E49 = 51,
    #[event(domain = "d50")]
    E50 = 52,
    #[event(domain = "d51")]
    E51 = 53,
    #[event(domain = "d52")]
    E52 = 54,
    #[event(domain = "d53")]
    E53 = 55,
    #[event(domain = "d54")]
    E54 = 56,
    #[event(domain = "d55")]
    E55 = 57,
    #[event(domain = "d56")]
    E56 = 58,
    #[event(domain = "d57")]
    E57 = 59,
    #[event(domain = "d58")]
    E58 = 60,
    #[event(domain = "d59")]
    E59 = 61,
    #[event(domain = "d60")]
    E60 = 62,
    #[event(domain = "d61")]
    E61 = 63,
    #[event(domain = "d62")]
    E62 = 64,
    #[event(domain = "d63")]
    E63 = 65,
    #[event(domain = "d64")]
    E64 = 66,
}

fn main() {}
