//! The attribute `scoped` hides nothing from lints.
#![deny(dead_code)]

use eventring::scoped;

#[scoped]
fn dead(number: u8) -> u8 {
    number
}

struct Stack;

impl Stack {
    #[scoped]
    fn dead_method(&self) {}
}

fn main() {
    let _ = Stack;
}
