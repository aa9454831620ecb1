//! The attribute `scoped` hides nothing from lints.
#![deny(warnings)]

use eventring::scoped;

#[scoped]
fn dead(number: u8) -> u8 {
    let unused = 3;
    number
}

struct Stack;

impl Stack {
    #[scoped]
    fn dead(&self) {}

    #[scoped]
    fn badName(mut self) -> Self {
        self
    }
}

fn main() {
    let _ = Stack.badName();
}
