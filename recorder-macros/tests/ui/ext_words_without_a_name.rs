//! Values for extension words that cannot be set under this name: no word has the name, or it is `span`.
use eventring::global::GlobalRecorder;
use eventring::schema::EventType;
use eventring::{ext_scope, record};

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, recorder = SHOP, ext(0 = order))]
#[repr(u16)]
enum Shop {
    Started = 2,
}

fn main() {
    record!(Shop::Started; order = 5, line = 6);
    let _line = ext_scope!(Shop, line = 6);
    let _span = ext_scope!(Shop, span = 7);
}
