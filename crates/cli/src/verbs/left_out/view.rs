//! The verb `view` in a program built without it.

use crate::exit::Exit;
pub(crate) use crate::left_out::LeftOut as ViewArgs;

pub(crate) fn run(_: &ViewArgs) -> anyhow::Result<Exit> {
    Err(crate::left_out::failure("the verb `view`", "view").into())
}
