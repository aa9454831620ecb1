//! The verbs `forward` and `receive` in a program built without them.

use crate::exit::Exit;
pub(crate) use crate::left_out::{LeftOut as ForwardArgs, LeftOut as ReceiveArgs};

pub(crate) fn run(_: &ForwardArgs) -> anyhow::Result<Exit> {
    Err(crate::left_out::failure("the verbs `forward` and `receive`", "forward").into())
}

pub(crate) use run as run_receive;
