//! The tools, their arguments, and the command line of each tool call.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::ffi::OsString;

/// The largest number of files of a call, and the longest text of an argument.
const FILES_MAX: usize = 1000;
const TEXT_BYTES_MAX: usize = 4096;
/// The bytes of an answer: usually, and at most.
pub(super) const ANSWER_BYTES: u64 = 16_384;
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// A tool: a verb that only reads.
pub(super) struct Tool {
    verb: &'static str,
    description: &'static str,
    /// How many files it takes, at least and at most.
    files: (usize, usize),
    options: &'static [Option_],
    /// How its answer is made to fit.
    pub(super) fits: Fits,
}

/// A tool as `tools/list` shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownTool {
    name: String,
    description: &'static str,
    input_schema: InputSchema,
    annotations: Annotations,
}

/// The arguments of a tool, as JSON Schema says it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InputSchema {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(serialize_with = "as_map")]
    properties: Vec<(&'static str, Property)>,
    required: Vec<&'static str>,
    additional_properties: bool,
}

#[derive(Serialize)]
struct Property {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    files: Option<Files>,
    description: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Files {
    items: Items,
    min_items: usize,
    max_items: usize,
}

#[derive(Serialize)]
struct Items {
    #[serde(rename = "type")]
    kind: &'static str,
}

fn as_map<S: Serializer>(properties: &[(&str, Property)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(properties.iter().map(|(name, property)| (name, property)))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    read_only_hint: bool,
    destructive_hint: bool,
    open_world_hint: bool,
}

/// How an answer is made to fit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fits {
    /// The verb has `--budget`.
    Budget,
    /// The verb has `--budget`, `--limit` and `--after`.
    List,
    /// It prints one object, which fits or not.
    Whole,
}

/// An option of a tool, which the verb has under the same name.
#[derive(Clone, Copy)]
struct Option_ {
    name: &'static str,
    /// The type in JSON Schema.
    kind: &'static str,
    description: &'static str,
    /// True if it is the word before the files, which must be given.
    is_word: bool,
}

const fn text(name: &'static str, description: &'static str) -> Option_ {
    Option_ { name, kind: "string", description, is_word: false }
}

const fn number(name: &'static str, description: &'static str) -> Option_ {
    Option_ { kind: "integer", ..text(name, description) }
}

const FROM: Option_ = text("from", "only from this time on: RFC 3339, +1.5s since the beginning, or nanoseconds");
const TO: Option_ = text("to", "only until this time");
const MANY: (usize, usize) = (1, FILES_MAX);

/// A tool like most of them: it reads several captures or rings, has no options, and answers with a list.
const TOOL: Tool = Tool { verb: "", description: "", files: MANY, options: &[], fits: Fits::List };

/// The tools.
pub(super) const ALL: [Tool; 11] = [
    Tool {
        verb: "ask",
        description: "A first look at a recording: what was recorded and lost, and red flags with their evidence",
        fits: Fits::Budget,
        ..TOOL
    },
    Tool {
        verb: "summary",
        description: "The spans of a recording by name: counts and percentiles of durations; typed events, programs, losses",
        options: &[
            text("where", "a condition: span=NAME, dur>50ms, level>=ERROR, field.NAME=VALUE, and, or, not"),
            FROM,
            TO,
        ],
        ..TOOL
    },
    Tool {
        verb: "open",
        description: "The spans that are open now, or were when the program died, or at a time of a capture",
        options: &[text("min-age", "only spans open for this long: 500ms"), text("at", "of a capture: at this time")],
        ..TOOL
    },
    Tool {
        verb: "why",
        description: "Why spans were slow: where their time went, and what is different about them",
        options: &[
            text("span", "the name of the spans, or target::name"),
            number("slowest", "how many of the slowest, 5 if not given"),
            number("id", "only the span with this id"),
        ],
        ..TOOL
    },
    Tool {
        verb: "tasks",
        description: "Tokio tasks: states, polls, wakes, waits for locks, deadlocks",
        options: &[text("slowest", "the order: longest-poll, busy, scheduled, polls or wakes")],
        ..TOOL
    },
    Tool {
        verb: "info",
        description: "What a ring is: its state, writer, sizes and counts",
        files: (1, 1),
        fits: Fits::Whole,
        ..TOOL
    },
    Tool {
        verb: "list",
        description: "The rings of this machine that this user can read, and their programs",
        files: (0, 0),
        ..TOOL
    },
    Tool {
        verb: "exec blocks",
        description: "Blocks of execution events, a line each, and a last line with `cut` and `next`. A block with its \
                      transactions may need some 100,000 bytes; with headers, some 3,000",
        options: &[
            text("from", "of a ring: oldest, newest, or the number of a block"),
            Option_ { kind: "boolean", ..text("headers", "without transactions") },
        ],
        ..TOOL
    },
    Tool {
        verb: "diff",
        description: "The spans of two captures, and whether their durations differ significantly",
        files: (2, 2),
        ..TOOL
    },
    Tool {
        verb: "check",
        description: "Whether a program records, since when, what is left out, and if nothing is recorded: why. The file is the \
                      name or path of a ring, or pid:N for a process",
        files: (1, 1),
        options: &[text("within", "count it as recording only if its last event is not older than this: 10s")],
        fits: Fits::Whole,
    },
    Tool {
        verb: "find",
        description: "Events in many captures that fulfil a condition by what they say themselves, a line each, and at last \
                      the counts, the losses that could hide a hit, and `next`. Files are captures, and directories of them",
        options: &[
            Option_ {
                is_word: true,
                ..text(
                    "expression",
                    "the condition: request_id=abc, span=NAME, level>=ERROR, field.NAME>5, and, or, not",
                )
            },
            FROM,
            TO,
        ],
        ..TOOL
    },
];

impl Tool {
    /// Returns the tool's name: its verb, with `_` between its words.
    pub(super) fn name(&self) -> String {
        self.verb.replace(' ', "_")
    }

    fn all_options(&self) -> Vec<Option_> {
        let mut all = self.options.to_vec();
        if self.fits == Fits::List {
            all.push(number("limit", "at most so many of the list, or lines"));
            all.push(text("after", "go on after this: `next` of the answer before"));
        }
        all.push(number("max_bytes", "the largest answer: 16384 if not given, at least 1024, at most 1048576"));
        all
    }

    /// Returns the names of the arguments, as a sentence has them.
    fn arguments(&self) -> String {
        let files = (self.files.1 > 0).then_some("files");
        let options = self.all_options();
        files.into_iter().chain(options.iter().map(|option| option.name)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the tool as `tools/list` shows it.
    pub(super) fn shown(&self) -> ShownTool {
        let options = self.all_options();
        let (least, most) = self.files;
        let property = |option: &Option_| Property { kind: option.kind, files: None, description: option.description };
        let files = (most > 0).then_some(Property {
            kind: "array",
            files: Some(Files { items: Items { kind: "string" }, min_items: least, max_items: most }),
            description: "paths of captures, or names or paths of rings",
        });
        let files = files.map(|files| ("files", files));
        let words = options.iter().filter(|option| option.is_word).map(|option| option.name);
        let required = words.chain((least > 0).then_some("files")).collect();
        ShownTool {
            name: self.name(),
            description: self.description,
            input_schema: InputSchema {
                kind: "object",
                properties: options.iter().map(|option| (option.name, property(option))).chain(files).collect(),
                required,
                additional_properties: false,
            },
            annotations: Annotations { read_only_hint: true, destructive_hint: false, open_world_hint: false },
        }
    }

    /// Returns the largest answer to a call, in bytes.
    ///
    /// # Errors
    /// It is no number, too small or too large.
    pub(super) fn answer_bytes(arguments: &Map<String, Value>) -> Result<u64, String> {
        let Some(given) = arguments.get("max_bytes") else { return Ok(ANSWER_BYTES) };
        let bytes = given.as_u64().filter(|bytes| (1024..=ANSWER_BYTES_MAX).contains(bytes));
        bytes.ok_or_else(|| format!("max_bytes: expected a number from 1024 to {ANSWER_BYTES_MAX}"))
    }

    /// Returns the command line of a call, after the name of the program.
    ///
    /// # Errors
    /// An argument is not one of the tool's, or has another type.
    pub(super) fn command_line(&self, arguments: &Map<String, Value>, bytes_max: u64) -> Result<Vec<OsString>, String> {
        let mut line: Vec<OsString> = self.verb.split(' ').chain(["--json"]).map(OsString::from).collect();
        if matches!(self.fits, Fits::Budget | Fits::List) {
            line.push(format!("--budget={bytes_max}").into());
        }
        let options = self.all_options();
        let (mut words, mut files): (Vec<OsString>, &[Value]) = (Vec::new(), &[]);
        for (name, value) in arguments {
            if name == "files" {
                files = value.as_array().ok_or("files: expected a list of texts")?;
                continue;
            }
            let Some(option) = options.iter().find(|option| option.name == name) else {
                let name = crate::text::format::one_line(name);
                return Err(format!("{name}: there is no such argument; `{}` takes {}", self.name(), self.arguments()));
            };
            let Option_ { name, kind, .. } = *option;
            let text = match (value, kind) {
                (Value::Bool(is_wanted), "boolean") => {
                    line.extend(is_wanted.then(|| format!("--{name}").into()));
                    continue;
                }
                (Value::String(text), "string") if text.len() <= TEXT_BYTES_MAX && !text.contains('\0') => text.clone(),
                (Value::Number(number), "integer") if number.is_u64() => number.to_string(),
                _ => {
                    return Err(format!(
                        "{name}: expected a value of the type {kind}, of at most {TEXT_BYTES_MAX} bytes"
                    ));
                }
            };
            if option.is_word {
                words.push(text.into());
            } else if name != "max_bytes" {
                // The value is part of the word, so that it is no option itself.
                line.push(format!("--{name}={text}").into());
            }
        }
        if let Some(option) = options.iter().find(|option| option.is_word && !arguments.contains_key(option.name)) {
            return Err(format!("{}: it must be given; `{}` takes {}", option.name, self.verb, self.arguments()));
        }
        let (least, most) = self.files;
        if !(least..=most).contains(&files.len()) {
            let given = files.len();
            return Err(format!(
                "files: expected {least} to {most}, {given} are given; `{}` takes {}",
                self.name(),
                self.arguments()
            ));
        }
        if !files.is_empty() {
            line.push("--".into());
        }
        line.append(&mut words);
        for file in files {
            let name =
                file.as_str().filter(|name| name.len() <= TEXT_BYTES_MAX && !name.contains('\0') && !name.is_empty());
            line.push(name.ok_or("files: expected texts that can be names of files")?.into());
        }
        Ok(line)
    }
}
