//! Functions, calls and types of all kinds that use the macros. Nothing in them is against a lint of the compiler, so
//! what a lint finds here is the macros' fault.

use eventring::global::GlobalRecorder;
use eventring::schema::{EventPayload, EventType, PayloadField, Utf8};
use eventring::tracing::Level;
use eventring::{ext_scope, log, record, recordv, scope, scoped};
use std::fmt::Debug;

#[scoped]
fn nothing() {}

#[scoped]
fn number(number: u32) -> u32 {
    number
}

#[scoped(skip(_unused))]
fn skipped(_unused: u8, text: &str) -> usize {
    text.len()
}

#[scoped]
fn underscored(_scope: u8, _unused: u8) {}

#[scoped(skip_all)]
fn all_skipped(low: u8, high: u8) -> u8 {
    low.max(high)
}

#[scoped("named", target = "target", level = "debug", fields(text = text.len(), ?more, of.text = 1))]
fn with_fields(text: &str, more: Option<u8>) -> usize {
    text.len() + usize::from(more.unwrap_or(0))
}

#[scoped(level = Level::TRACE)]
fn changed(mut count: u8, by: &mut u8) -> u8 {
    count += *by;
    *by = 0;
    count
}

#[scoped]
fn generic<T: Debug, F>(value: T, step: u32, name: &str, of: F) -> (u32, T)
where
    F: Fn(&T) -> u32 + Debug,
{
    let of = of(&value);
    (step + of + u32::from(!name.is_empty()), value)
}

#[scoped(skip(steps))]
fn iterates(steps: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    steps.map(|step| step + 1)
}

#[scoped(skip_all)]
fn patterns((low, high): (u8, u8), [first, ..]: [u8; 3]) -> u8 {
    low + high + first
}

#[scoped]
fn fails(value: Result<u8, String>) -> Result<u8, String> {
    let value = value?;
    if value > 3 {
        return Err("large".to_owned());
    }
    Ok(value)
}

#[scoped]
fn closes(value: u8) -> impl Fn(u8) -> u8 {
    move |other| value + other
}

#[scoped]
fn never(value: u8) -> ! {
    panic!("{value}")
}

#[scoped]
extern "C" fn foreign(value: i32) -> i32 {
    value
}

#[scoped]
fn r#match(r#type: u32) -> u32 {
    r#type
}

macro_rules! of_a_macro {
    ($name:ident $argument:ident $body:block) => {
        #[scoped]
        fn $name($argument: u8, _own: u8) -> u8 $body
    };
}

of_a_macro!(in_a_macro value { value + 1 });

/// Something with methods.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stack(Vec<u8>);

impl Stack {
    #[scoped]
    fn of(first: u8) -> Self {
        Self(vec![first])
    }

    #[scoped]
    fn push(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    #[scoped(skip(self))]
    fn all(&self) -> &[u8] {
        &self.0
    }

    #[scoped]
    fn into_inner(self) -> Vec<u8> {
        self.0
    }
}

trait Works {
    fn work(&self, with: u8) -> u8;

    #[scoped]
    fn by_default(&self, with: u8) -> u8 {
        self.work(with)
    }
}

impl Works for Stack {
    #[scoped]
    fn work(&self, with: u8) -> u8 {
        with
    }
}

fn logs() {
    let (name, mut count) = ("ada", 3_u32);
    log::info!("a text");
    log::error!("{name} {count:>5} {}", count + 1);
    log::warn!(target: "target", count, "{0} {0:?}", name);
    log::debug!(count, name, kind = ?Some(1), path = %"p", "with fields {}", [1, 2].len());
    log::trace!(count, of.whole = 0.5);
    log::info!("{count:#x} {name:width$} {:.*}", 2, 1.5, width = 10);
    count += 1;
    log::info!(
        "{count}",
        count = {
            count += 1;
            count
        }
    );
}

fn scopes() {
    let (bytes, kind) = (17_u32, Some("text"));
    let _first = scope!("first");
    let _second = scope!(target: "parser", level: Level::DEBUG, "parse", bytes, kind = ?kind, of.whole = 0.5);
    let _third = scope!("third", ?kind, %bytes, text = "t", error = std::io::Error::other("e").to_string());
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[derive(PayloadField, Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Side {
    #[event(alias = "BOUGHT")]
    Buy = 1,
    Sell = 2,
}

#[derive(PayloadField, Clone, Copy, Debug, PartialEq, Eq)]
struct OrderId(u64);

#[derive(EventPayload, Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    side: Side,
    id: OrderId,
    #[event(default = 7_u32)]
    count: u32,
    #[event(redact)]
    secret: [u8; 4],
    r#type: bool,
}

/// A type of events.
#[derive(EventType, Clone, Copy, Debug, PartialEq, Eq)]
#[event(content_type = 300, recorder = SHOP, ext(0 = order: seqno, 1 = line), payloads(AnyOfShop))]
#[repr(u16)]
pub enum Shop {
    /// An error of recording.
    RecordError = 1,
    /// An order.
    #[event(payload = Order, trailing(flags: bool * count))]
    OrderPlaced = 2,
    /// The end.
    #[event(carries(order))]
    DayEnded = 3,
    /// A text.
    #[event(trailing(text: Utf8))]
    Told = 4,
    /// Only an order.
    #[event(payload = Order)]
    OrderPaid = 5,
}

fn records() {
    let order = Order { side: Side::Buy, id: OrderId(5), count: 2, secret: [0; 4], r#type: true };
    let _order = ext_scope!(Shop, order = 1);
    let _ = record!(Shop::OrderPaid, &order);
    let _ = record!(Shop::DayEnded);
    let _ = record!(Shop::DayEnded; line = 3);
    let _ = recordv!(Shop::OrderPlaced, &order, [b"\x01\x00"]);
    let _ = recordv!(Shop::Told, &(), [b"text"]; order = 2);
    if let Some(active) = SHOP.active() {
        let _ = record!(active.recorder() => Shop::OrderPaid, &order);
        let _ = recordv!(active.recorder() => raw(18), [b"one", b"two"]);
        let _ = recordv!(active.recorder() => raw(18), [b"one"]; ext[1] = 7);
    }
    let sold = Order { side: Side::Sell, ..order };
    assert!(sold != order && OrderPlacedView::decode(&[]).is_err() && Shop::Told.decode(b"text").is_ok());
    assert!((sold.side, sold.id.0, sold.count, sold.secret, sold.r#type) == (Side::Sell, 5, 2, [0; 4], true));
}

/// Calls everything.
pub fn main() {
    nothing();
    let mut by = 3;
    assert!(number(1) == 1 && skipped(1, "a") == 1 && all_skipped(1, 2) == 2);
    underscored(1, 2);
    assert!(with_fields("a", None) == 1 && changed(1, &mut by) == 4 && r#match(1) == 1);
    let step: fn(&u8) -> u32 = |value| u32::from(*value);
    assert!(generic(3_u8, 1, "ada", step).0 == 5);
    assert!(iterates([1].into_iter()).eq([2]) && patterns((1, 2), [3, 4, 5]) == 6);
    assert!(fails(Ok(1)).is_ok() && fails(Ok(4)).is_err() && closes(1)(2) == 3 && foreign(1) == 1);
    assert!(std::panic::catch_unwind(|| never(1)).is_err() && in_a_macro(1, 2) == 2);
    let mut stack = Stack::of(1);
    assert!(stack.push(2).all() == [1, 2] && stack.by_default(3) == 3 && stack.into_inner() == [1, 2]);
    logs();
    scopes();
    records();
}
