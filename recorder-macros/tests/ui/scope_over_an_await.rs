//! The compiler's message says what to use in place of a scope. (It checks this only if it finds no other mistake.)

fn must_be_send(_: impl Send) {}

fn main() {
    must_be_send(async {
        let _scope = eventring::scope!("held");
        std::future::ready(()).await;
    });
}
