//! A line of JSON-RPC, and its answer.

use super::tools;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The versions of the protocol that are understood, the newest last.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The number of messages in a batch. Each may have an answer of 1 MiB, and all wait for the last one.
const BATCH_MAX: usize = 64;

const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const NO_METHOD: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;

/// The id of what has none, or none that can be read.
const NO_ID: &str = "null";

/// The result of a request.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum RequestResult {
    Begun {
        protocol_version: Option<&'static str>,
        capabilities: Capabilities,
        server_info: ServerInfo,
        instructions: &'static str,
    },
    Pong {},
    Tools {
        tools: Vec<tools::ShownTool>,
    },
    Called {
        content: [Content; 1],
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Capabilities {
    tools: Nothing,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct ServerInfo {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Content {
    Text { text: String },
}

/// Why a request has no result.
#[derive(Serialize)]
struct Refusal {
    /// That of JSON-RPC.
    code: i64,
    message: String,
}

fn refusal<T>(code: i64, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { code, message: why.into() })
}

/// Returns the answer to a line; `None` if nobody waits for one. `line` is `None` if it was too long. `call` runs a
/// tool for the request with this id, which is JSON, and returns the text of its answer, or of its error.
pub(super) fn answer(
    line: Option<&[u8]>,
    call: impl Fn(&str, &tools::Tool, &Map<String, Value>) -> Result<String, String>,
) -> Option<String> {
    let refused = |code, why: &str| Some(written(NO_ID, &refusal(code, why)));
    let Some(line) = line else { return refused(INVALID_REQUEST, "the message is longer than 1 MiB") };
    if line.trim_ascii().is_empty() {
        return None;
    }
    // This finds out whether the line is JSON, however deep it is nested.
    let Ok(message) = serde_json::from_slice::<&RawValue>(line) else {
        return refused(PARSE_ERROR, "the line is not JSON");
    };
    let Ok(batch) = serde_json::from_str::<Vec<&RawValue>>(message.get()) else { return answer_one(message, &call) };
    if !(1..=BATCH_MAX).contains(&batch.len()) {
        return refused(INVALID_REQUEST, &format!("expected a batch of 1 to {BATCH_MAX} messages"));
    }
    let answers: Vec<String> = batch.into_iter().filter_map(|message| answer_one(message, &call)).collect();
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

/// Returns true if a line may have a request that takes long.
pub(super) fn may_call(line: &[u8]) -> bool {
    let name = b"tools/call";
    line.windows(name.len()).any(|part| part == name)
}

/// Returns the id of the request that the client does not want any more, as it stands in the line, if the line says that
/// of one.
pub(super) fn cancelled(line: &[u8]) -> Option<String> {
    let members = serde_json::from_slice::<BTreeMap<String, &RawValue>>(line).ok()?;
    let method = serde_json::from_str::<String>(members.get("method")?.get()).ok()?;
    let params = serde_json::from_str::<BTreeMap<String, &RawValue>>(members.get("params")?.get()).ok()?;
    Some(params.get("requestId")?.get().to_owned()).filter(|_| method == "notifications/cancelled")
}

/// Returns the answer to a message, which has the same id, digit for digit.
fn answer_one(
    message: &RawValue,
    call: &impl Fn(&str, &tools::Tool, &Map<String, Value>) -> Result<String, String>,
) -> Option<String> {
    let members = serde_json::from_str::<BTreeMap<String, &RawValue>>(message.get()).unwrap_or_default();
    let text = |name: &str| serde_json::from_str::<String>(members.get(name)?.get()).ok();
    let is_id = |id: &&str| id.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit());
    let id = members.get("id").map(|id| id.get()).filter(is_id);
    let (id, method) = match (text("jsonrpc").as_deref() == Some("2.0"), id, text("method")) {
        (true, Some(id), Some(method)) => (id, method),
        // A notification, or an answer to what was never asked.
        (true, None, Some(_)) if !members.contains_key("id") => return None,
        (true, Some(_), None) if members.contains_key("result") || members.contains_key("error") => return None,
        (_, id, _) => {
            let why = "expected one request or notification of JSON-RPC 2.0";
            return Some(written(id.unwrap_or(NO_ID), &refusal(INVALID_REQUEST, why)));
        }
    };
    let params = members.get("params").map_or(Ok(Value::Null), |params| serde_json::from_str(params.get()));
    let result = match params {
        Ok(params) => result_of(&method, &params, |tool, arguments| call(id, tool, arguments)),
        Err(why) => refusal(INVALID_PARAMS, format!("`params` cannot be read: {why}")),
    };
    Some(written(id, &result))
}

/// Writes an answer to the request with this id, which is JSON.
fn written(id: &str, result: &Result<RequestResult, Refusal>) -> String {
    let (name, value) = match result {
        Ok(result) => ("result", serde_json::to_string(result)),
        Err(refusal) => ("error", serde_json::to_string(refusal)),
    };
    let value = value.unwrap_or_else(|error| unreachable!("the keys of results are texts: {error}"));
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{name}":{value}}}"#)
}

fn result_of(
    method: &str,
    params: &Value,
    call: impl Fn(&tools::Tool, &Map<String, Value>) -> Result<String, String>,
) -> Result<RequestResult, Refusal> {
    Ok(match method {
        "initialize" => initialize(params),
        "ping" => RequestResult::Pong {},
        "tools/list" if !params["cursor"].is_null() => {
            return refusal(INVALID_PARAMS, "there is no such cursor: all tools are in one list");
        }
        "tools/list" => RequestResult::Tools { tools: tools::ALL.iter().map(tools::Tool::shown).collect() },
        "tools/call" => {
            let name = params["name"].as_str().unwrap_or_default();
            let Some(tool) = tools::ALL.iter().find(|tool| tool.name() == name) else {
                let names = tools::ALL.each_ref().map(tools::Tool::name).join(", ");
                return refusal(INVALID_PARAMS, format!("there is no such tool; there are {names}"));
            };
            let none = Map::new();
            let done = match &params["arguments"] {
                Value::Null => call(tool, &none),
                Value::Object(arguments) => call(tool, arguments),
                _ => return refusal(INVALID_PARAMS, "`arguments` must be an object"),
            };
            let (is_error, text) = done.map_or_else(|why| (true, why), |text| (false, text));
            RequestResult::Called { content: [Content::Text { text }], is_error }
        }
        _ => {
            return refusal(
                NO_METHOD,
                "there is no such method; there are initialize, ping, tools/list and tools/call",
            );
        }
    })
}

fn initialize(params: &Value) -> RequestResult {
    let asked = VERSIONS.iter().find(|version| params["protocolVersion"] == **version);
    RequestResult::Begun {
        protocol_version: asked.or(VERSIONS.last()).copied(),
        capabilities: Capabilities { tools: Nothing {} },
        server_info: ServerInfo { name: "eventring", version: env!("CARGO_PKG_VERSION") },
        instructions: "Recordings of programs: spans, log records, typed events. Begin with the tool `ask`, which names red \
                         flags; `list` shows the rings of running programs. Answers are bounded: `cut` counts what was left \
                         out, and `next` is the argument `after` of the next call.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(line: &str) -> Option<Value> {
        let answered = answer(Some(line.as_bytes()), |_, tool, _| Ok(tool.name()))?;
        Some(serde_json::from_str(&answered).unwrap())
    }

    #[test]
    fn requests_are_answered_and_what_is_none_gets_its_error() {
        let code = |line: &str| ask(line).unwrap()["error"]["code"].as_i64();
        assert_eq!(
            ask(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).unwrap().to_string(),
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#
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
        assert!(answer(None, |_, _, _| Ok(String::new())).unwrap().contains("-32600"));
        let called = ask(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ask"}}"#).unwrap();
        assert_eq!(called["result"]["content"][0]["text"], "ask");
        let begun = |version: &str| {
            let params = format!(r#"{{"protocolVersion":"{version}"}}"#);
            ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#)).unwrap()["result"]["protocolVersion"].clone()
        };
        assert_eq!((begun("2024-11-05"), begun("1999-01-01")), ("2024-11-05".into(), VERSIONS[3].into()));
    }

    #[test]
    fn a_line_says_which_request_is_not_wanted_any_more() {
        let of = |method: &str, id: &str| {
            cancelled(format!(r#"{{"method":"{method}","params":{{"requestId": {id} ,"reason":"x"}}}}"#).as_bytes())
        };
        assert_eq!(of("notifications/cancelled", "7").as_deref(), Some("7"));
        assert_eq!(of("notifications/cancelled", r#""a""#).as_deref(), Some(r#""a""#));
        assert_eq!((of("ping", "7"), cancelled(b"{"), cancelled(b"[]")), (None, None, None));
    }

    #[test]
    fn an_id_comes_back_digit_for_digit() {
        for id in ["123456789012345678901234567890", "-0", "1.50", "1e400", r#""\u00e4\"""#, r#""""#] {
            let answered =
                answer(Some(format!(r#"{{"method":"ping","id" : {id} ,"jsonrpc":"2.0"}}"#).as_bytes()), |_, _, _| {
                    Ok(String::new())
                });
            assert_eq!(answered.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
        }
    }

    #[test]
    fn what_is_nested_deep_is_json_and_the_right_thing_is_said_of_it() {
        let nested = |depth: usize| ["[", "]"].map(|bracket| bracket.repeat(depth)).concat();
        // A batch of one message, which is none.
        assert_eq!(ask(&nested(200)).unwrap()[0]["error"]["code"], INVALID_REQUEST);
        let request = |method: &str, depth| {
            let params = nested(depth);
            format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{method}","params":{{"a":{params}}}}}"#)
        };
        assert_eq!(ask(&request("ping", 100)).unwrap()["result"].to_string(), "{}");
        let refused = ask(&request("ping", 300)).unwrap();
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&3.into(), &INVALID_PARAMS.into()), "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("recursion limit"), "{refused}");
        // The control.
        assert_eq!(ask(&"[".repeat(200)).unwrap()["error"]["code"], PARSE_ERROR);
    }

    #[test]
    fn each_message_of_a_batch_is_answered_as_if_it_was_alone() {
        let (ping, note) = (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, r#"{"jsonrpc":"2.0","method":"x"}"#);
        let list = r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"list"}}"#;
        let answers = ask(&format!("[{ping},{note},7,{list}]")).unwrap();
        let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
        assert_eq!(ids, [&Value::from(1), &Value::Null, &Value::from("b")]);
        assert_eq!(
            (&answers[0], answers[2]["result"]["content"][0]["text"].as_str()),
            (&ask(ping).unwrap(), Some("list"))
        );
        assert_eq!(answers[1]["error"]["code"], INVALID_REQUEST);
        assert_eq!(ask(&format!("[{note}]")), None);
        let many = |count: usize| format!("[{}]", vec![ping; count].join(","));
        assert_eq!(ask(&many(BATCH_MAX)).unwrap().as_array().unwrap().len(), BATCH_MAX);
        assert_eq!(ask(&many(BATCH_MAX + 1)).unwrap()["error"]["code"], INVALID_REQUEST);
    }

    #[test]
    fn a_cursor_that_nobody_has_given_out_is_refused() {
        let list = |params: &str| {
            ask(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{params}}}"#)).unwrap()
        };
        for cursor in [r#""""#, r#""abc""#, "7", "{}"] {
            let refused = list(&format!(r#"{{"cursor":{cursor}}}"#));
            assert_eq!(refused["error"]["code"], INVALID_PARAMS, "{refused}");
        }
        let whole = list("{}");
        assert!(whole["result"]["tools"].is_array() && whole["result"].get("nextCursor").is_none(), "{whole}");
    }

    proptest! {
        #[test]
        fn no_mutant_of_a_request_ends_the_server(
            which in 0..6_usize,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut line = [
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#,
                r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"why","arguments":{"files":["a"],"slowest":3}}}"#,
                r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"find","arguments":{"files":["a"],"expression":"-o"}}}"#,
                r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
                r#"[{"jsonrpc":"2.0","id":12345678901234567890123,"method":"ping"},{"jsonrpc":"2.0","method":"x"}]"#,
            ][which].as_bytes().to_vec();
            changes.iter().for_each(|(at, byte)| { let at = at.index(line.len()); line[at] = *byte; });
            if changes.len() % 2 == 1 {
                line.truncate(cut.index(line.len()));
            }
            let answered = answer(Some(&line), |_, tool, arguments| tool.command_line(arguments, 1024).map(|_| String::new()));
            let answered: Value = serde_json::from_str(answered.as_deref().unwrap_or("[]")).unwrap();
            let one = std::slice::from_ref(&answered);
            for answered in answered.as_array().map_or(one, Vec::as_slice) {
                prop_assert_eq!(&answered["jsonrpc"], "2.0");
                prop_assert!(answered.get("result").is_some() != answered.get("error").is_some());
            }
        }
    }
}
