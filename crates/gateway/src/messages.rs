//! JSON-RPC.

use serde_json::{Value, json};

/// Returns what is told to a subscription.
pub(crate) fn notification(subscription: u64, result: &Value) -> String {
    // The parts are put together here, because a result is long, and was made for this.
    format!(
        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":"{subscription:#x}","result":{result}}}}}"#
    )
}

/// Returns the answer to a request.
pub(crate) fn success(id: &Value, result: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// Returns the answer to a request that is refused.
pub(crate) fn failure(id: &Value, code: i64, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }).to_string()
}
