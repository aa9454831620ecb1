//! JSON-RPC.

use serde::Serialize;

/// The id of what has none, or none that can be read.
pub(crate) const NO_ID: &str = "null";

/// Returns what is told to a subscription.
pub(crate) fn notification(subscription: u64, result: &impl Serialize) -> String {
    let result = text(result);
    // The parts are put together here, because a result is long, and was made for this.
    format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{subscription:#x}","result":{result}}}}}"#
    )
}

fn text(result: &impl Serialize) -> String {
    serde_json::to_string(result).unwrap_or_else(|error| unreachable!("the keys of results are texts: {error}"))
}

/// What a subscription is told of notifications that it has lost.
#[derive(Serialize)]
pub(crate) struct Lost {
    pub(crate) lost: u64,
}

#[derive(Serialize)]
struct Refusal<'a> {
    code: i64,
    message: &'a str,
}

/// Returns the answer to the request with this id, which is JSON and comes back digit for digit.
pub(crate) fn success(id: &str, result: &impl Serialize) -> String {
    let result = text(result);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Returns the answer to a request that is refused.
pub(crate) fn failure(id: &str, code: i64, message: &str) -> String {
    let error = text(&Refusal { code, message });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
