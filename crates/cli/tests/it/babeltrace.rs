//! Traces of the Common Trace Format, read by babeltrace2.

use crate::fixtures::*;

/// A value that babeltrace2 has printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Ctf {
    Number(String),
    Text(String),
    /// The number of an enumeration, and the first of its labels.
    Label(Option<String>, String),
    List(Vec<Ctf>),
    Struct(Vec<(String, Ctf)>),
}

/// An event that babeltrace2 has printed.
#[derive(Clone, Debug)]
pub struct CtfEvent {
    pub nanos: u64,
    pub name: String,
    /// The fields of the contexts of its packet and of the event itself, together.
    pub context: BTreeMap<String, Ctf>,
    /// Its own fields.
    pub fields: BTreeMap<String, Ctf>,
}

/// A trace as babeltrace2 has read it.
#[derive(Debug)]
pub struct CtfTrace {
    pub events: Vec<CtfEvent>,
    /// The counts of discarded events, by the name of the stream's file.
    pub discarded: BTreeMap<String, u64>,
    pub errors: String,
    pub is_read: bool,
}

impl Ctf {
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) | Self::Label(_, number) => number.parse().unwrap(),
            other => panic!("{other:?} is no number"),
        }
    }
}

/// Has babeltrace2 read a trace. If it is missing, prints a line that says so and returns `None`.
pub fn read(trace: &Path) -> Option<CtfTrace> {
    let mut command = Command::new("babeltrace2");
    command.args(["--names=all", "--clock-cycles", "--no-delta"]).arg(trace).env("LC_ALL", "C.UTF-8");
    let Ok(output) = command.output() else {
        eventring_stress::missing("babeltrace2 is not there; .ci/run installs it");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut discarded = BTreeMap::new();
    for line in errors.lines() {
        let Some((count, _)) =
            line.strip_prefix("WARNING: Tracer discarded ").and_then(|rest| rest.split_once(" event"))
        else {
            continue;
        };
        let (_, stream) = line.split_once("within stream \"").unwrap();
        let (path, _) = stream.split_once('"').unwrap();
        let file = path.rsplit('/').next().unwrap().to_owned();
        *discarded.entry(file).or_insert(0) += count.parse::<u64>().unwrap();
    }
    let out = String::from_utf8(output.stdout).unwrap();
    let events = out.lines().map(event).collect();
    Some(CtfTrace { events, discarded, errors, is_read: output.status.success() })
}

/// Parses a line such as `timestamp = 017, name = log, stream.packet.context = { … }, event.fields = { … }`.
fn event(line: &str) -> CtfEvent {
    let (nanos, rest) = line.strip_prefix("timestamp = ").unwrap().split_once(", name = ").unwrap();
    let (name, rest) = rest.split_once(", stream.packet.context = ").unwrap();
    let mut parser = Parser(rest);
    let (mut context, mut fields) = (BTreeMap::new(), BTreeMap::new());
    parser.members(&mut context);
    parser.expect(", stream.event.context = ");
    parser.members(&mut context);
    if parser.skip(", event.fields = ") {
        parser.members(&mut fields);
    }
    assert_eq!(parser.0, "", "{line}");
    CtfEvent { nanos: nanos.parse().unwrap(), name: name.to_owned(), context, fields }
}

struct Parser<'a>(&'a str);

impl Parser<'_> {
    fn skip(&mut self, text: &str) -> bool {
        match self.0.strip_prefix(text) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str) {
        assert!(self.skip(text), "{text:?} is missing before {}", self.0);
    }

    fn until(&mut self, ends: &[char]) -> String {
        let end = self.0.find(ends).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        text.to_owned()
    }

    /// Takes a struct, and adds its members.
    fn members(&mut self, to: &mut BTreeMap<String, Ctf>) {
        let Ctf::Struct(members) = self.value() else { panic!("no struct: {}", self.0) };
        for (name, value) in members {
            assert!(to.insert(name, value).is_none(), "a name is there twice before {}", self.0);
        }
    }

    fn value(&mut self) -> Ctf {
        if self.skip("{ ") {
            let mut members = Vec::new();
            while !self.skip("}") {
                let name = self.until(&[' ']);
                self.expect(" = ");
                members.push((name, self.value()));
                let _ = self.skip(", ") || self.skip(" ");
            }
            return Ctf::Struct(members);
        }
        if self.skip("[ ") {
            let mut elements = Vec::new();
            while !self.skip("]") {
                self.expect(&format!("[{}] = ", elements.len()));
                elements.push(self.value());
                let _ = self.skip(", ") || self.skip(" ");
            }
            return Ctf::List(elements);
        }
        if self.skip("( ") {
            let label = if self.skip("<unknown>") { None } else { Some(self.string()) };
            self.expect(" : container = ");
            let number = self.until(&[' ']);
            self.expect(" )");
            return Ctf::Label(label, number);
        }
        if self.0.starts_with('"') { Ctf::Text(self.string()) } else { Ctf::Number(self.until(&[',', ' '])) }
    }

    /// Takes a string in quotation marks, with the escapes of C.
    fn string(&mut self) -> String {
        self.expect("\"");
        let mut text = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return text;
                }
                '\\' => text.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'v' => '\u{b}',
                    'f' => '\u{c}',
                    'e' => '\u{1b}',
                    'x' => {
                        let digits: String = chars.by_ref().take(2).map(|(_, digit)| digit).collect();
                        u8::from_str_radix(&digits, 16).unwrap().into()
                    }
                    c @ ('"' | '\\' | '?') => c,
                    c => panic!("\\{c} in {}", self.0),
                }),
                c => text.push(c),
            }
        }
        panic!("no end: {}", self.0)
    }
}
