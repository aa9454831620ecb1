//! The verb `exec gateway` in a program built without it.

use crate::exit::Exit;
pub(crate) use crate::left_out::LeftOut as GatewayArgs;

pub(crate) fn run(_: &GatewayArgs) -> anyhow::Result<Exit> {
    Err(crate::left_out::failure("the verb `exec gateway`", "gateway").into())
}
