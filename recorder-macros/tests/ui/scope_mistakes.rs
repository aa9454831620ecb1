//! A scope belongs to its thread, its fields have types that are recorded, and it is no scope of an async function.

use eventring::{scope, scoped};

struct Silent;

fn must_be_send(_: impl Send) {}

#[scoped]
async fn asynchronous() {}

#[scoped(level: "debug")]
fn wrong_argument() {}

#[scoped(level = "loud")]
fn wrong_level() {}

#[scoped(skip(pasword))]
fn misspelt(password: &str) {}

#[scoped]
fn without_debug(silent: Silent) {}

fn main() {
    must_be_send(scope!("sent"));
    let _scope = scope!("field", value = Silent);
    let _scope = scope!("no field", 1 + 1);
}
