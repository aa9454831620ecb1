//! JSON-RPC.

use serde_json::{Value, json};

/// The id of what has none, or none that can be read.
pub(crate) const NO_ID: &str = "null";

/// Returns what is told to a subscription.
pub(crate) fn notification(subscription: u64, result: &Value) -> String {
    // The parts are put together here, because a result is long, and was made for this.
    format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{subscription:#x}","result":{result}}}}}"#
    )
}

/// Returns the answer to the request with this id, which is JSON and comes back digit for digit.
pub(crate) fn success(id: &str, result: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// Returns the answer to a request that is refused.
pub(crate) fn failure(id: &str, code: i64, message: &str) -> String {
    let error = json!({ "code": code, "message": message });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
