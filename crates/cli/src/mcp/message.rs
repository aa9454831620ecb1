//! A line of JSON-RPC, and its answer.

use super::tools;
use serde_json::{Map, Value, json};

/// The versions of the protocol that are understood, the newest last.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const NO_METHOD: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// Returns the answer to a line; `None` if nobody waits for one. `line` is `None` if it was too long. `call` runs a
/// tool and returns the text of its answer, or of its error.
pub(super) fn answer(
    line: Option<&[u8]>,
    call: impl FnOnce(&tools::Tool, &Map<String, Value>) -> Result<String, String>,
) -> Option<Value> {
    let error = |id: Value, code: i64, message: &str| {
        Some(json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
    };
    let Some(line) = line else { return error(Value::Null, INVALID_REQUEST, "the message is longer than 1 MiB") };
    if line.trim_ascii().is_empty() {
        return None;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return error(Value::Null, PARSE_ERROR, "the line is not JSON");
    };
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let method = message.get("method").and_then(Value::as_str);
    let (id, method) = match (message["jsonrpc"] == "2.0", id, method) {
        (true, Some(id), Some(method)) => (id, method),
        // A notification, or an answer to what was never asked.
        (true, None, Some(_)) if message.get("id").is_none() => return None,
        (true, Some(_), None) if message.get("result").is_some() || message.get("error").is_some() => return None,
        (_, id, _) => {
            return error(
                id.unwrap_or_default(),
                INVALID_REQUEST,
                "expected one request or notification of JSON-RPC 2.0",
            );
        }
    };
    let params = &message["params"];
    let result = match method {
        "initialize" => initialize(params),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools::ALL.iter().map(tools::Tool::to_json).collect::<Vec<_>>() }),
        "tools/call" => {
            let name = params["name"].as_str().unwrap_or_default();
            let Some(tool) = tools::ALL.iter().find(|tool| tool.verb == name) else {
                let names = tools::ALL.each_ref().map(|tool| tool.verb).join(", ");
                return error(id, INVALID_PARAMS, &format!("there is no such tool; there are {names}"));
            };
            let none = Map::new();
            let done = match &params["arguments"] {
                Value::Null => call(tool, &none),
                Value::Object(arguments) => call(tool, arguments),
                _ => return error(id, INVALID_PARAMS, "`arguments` must be an object"),
            };
            let (is_error, text) = done.map_or_else(|why| (true, why), |text| (false, text));
            json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
        }
        _ => {
            return error(
                id,
                NO_METHOD,
                "there is no such method; there are initialize, ping, tools/list and tools/call",
            );
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn initialize(params: &Value) -> Value {
    let asked = VERSIONS.iter().find(|version| params["protocolVersion"] == **version);
    json!({
        "protocolVersion": asked.or(VERSIONS.last()), "capabilities": { "tools": {} },
        "serverInfo": { "name": "eventring", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "Recordings of programs: spans, log records, typed events. Begin with the tool `ask`, which names red \
                         flags; `list` shows the rings of running programs. Answers are bounded: `cut` counts what was left \
                         out, and `next` is the argument `after` of the next call.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(line: &str) -> Option<Value> {
        answer(Some(line.as_bytes()), |tool, _| Ok(tool.verb.to_owned()))
    }

    #[test]
    fn requests_are_answered_and_what_is_none_gets_its_error() {
        let code = |line: &str| ask(line).unwrap()["error"]["code"].as_i64();
        assert_eq!(
            ask(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).unwrap(),
            json!({"jsonrpc":"2.0","id":7,"result":{}})
        );
        assert_eq!(ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert_eq!(code("{"), Some(PARSE_ERROR));
        assert_eq!(code("[]"), Some(INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), Some(INVALID_REQUEST));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"tools/kill"}"#), Some(NO_METHOD));
        assert_eq!(
            code(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capture"}}"#),
            Some(INVALID_PARAMS)
        );
        assert_eq!(
            code(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":[1]}}"#),
            Some(INVALID_PARAMS)
        );
        assert_eq!(answer(None, |_, _| Ok(String::new())).unwrap()["error"]["code"], INVALID_REQUEST);
        let called = ask(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ask"}}"#).unwrap();
        assert_eq!(called["result"]["content"][0]["text"], "ask");
        let begun = |version: &str| {
            let request = json!({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":version}});
            ask(&request.to_string()).unwrap()["result"]["protocolVersion"].clone()
        };
        assert_eq!((begun("2024-11-05"), begun("1999-01-01")), ("2024-11-05".into(), VERSIONS[3].into()));
    }

    proptest! {
        #[test]
        fn no_mutant_of_a_request_ends_the_server(
            which in 0..5_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut line = [
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
                r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"why","arguments":{"files":["a"],"slowest":3}}}"#,
                r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"find","arguments":{"files":["a"],"expression":"-o"}}}"#,
                r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            ][which].as_bytes().to_vec();
            changes.iter().for_each(|(at, byte)| { let at = at.index(line.len()); line[at] = *byte; });
            if changes.len() % 2 == 1 {
                line.truncate(cut.index(line.len()));
            }
            let answered = answer(Some(&line), |tool, arguments| tool.command_line(arguments, 1024).map(|_| String::new()));
            if let Some(answered) = answered {
                prop_assert_eq!(&answered["jsonrpc"], "2.0");
                prop_assert!(answered.get("result").is_some() != answered.get("error").is_some());
            }
        }
    }
}
