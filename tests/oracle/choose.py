"""Selections (CLI.md, "Selecting events" and "Comparing"): conditions, the options that say the same, and windows."""

import math
import re
from decimal import Decimal

from perf import COUNTER, EVENT, LEVELS

TOKEN = re.compile(r'\s*(\(|\)|(?:"(?:[^"\\]|\\.)*"|!=|<=|>=|=|<|>|[^\s()"=<>!])+)')
TERM = re.compile(r'((?:"[^"]*"|[^=<>!"])+)(!=|<=|>=|=|<|>)(.*)$', re.S)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", re.A)
INFINITE = re.compile(r"[+-]?inf(inity)?$", re.I)
WORDS = ("span", "event", "target", "thread", "level")
UNITS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}

def duration(text):
    return sum(int(Decimal(number) * UNITS[unit]) for number, unit in re.findall(r"([\d.]+)(ns|us|µs|ms|s|m|h)", text))

def fits(pattern, text):
    return text is not None and re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.S) is not None

def names_fit(pattern, name, target):
    return fits(pattern, name) or "::" in pattern and target is not None and fits(pattern, target + "::" + name)

def kinds_of(value):
    """A value as (number, text, truth), each None if it is not one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return (Decimal(repr(value)) if math.isfinite(value) else value), None, None
    if not isinstance(value, str):
        return None, None, value if isinstance(value, bool) else None
    number = Decimal(value) if NUMBER.match(value) else float(value) if INFINITE.match(value) else None
    return number, value, {"true": True, "false": False}.get(value)

def value_holds(value, operator, wanted):
    """One field's value against what the condition says; `!=` is decided by the caller."""
    number, text, truth = kinds_of(value)
    if wanted.startswith('"'):
        quoted = wanted[1:-1].replace('\\"', '"')
        if text is None or operator == "=":
            return fits(quoted, text)
        a, b = text.encode(), quoted.encode()
    else:
        other, word, other_truth = kinds_of(wanted)
        if wanted.lower().lstrip("+-") == "nan":
            return operator == "=" and isinstance(number, float) and math.isnan(number)
        if other is None:
            return operator == "=" and (fits(word, text) if other_truth is None else truth is other_truth)
        if number is None or isinstance(number, float) and math.isnan(number):
            return False
        a, b = number, other
    return {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]

def flat(prefix, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(prefix + [key], inner)
    else:
        yield ".".join(prefix), value

class Condition:
    """A condition of `--where` and of `find`; in the latter, names that are no words of the language are fields."""
    def __init__(self, text, bare_fields=False):
        self.tokens, self.bare = TOKEN.findall(text), bare_fields
        self.tree = self.joined("or")
    def joined(self, word):
        """Terms side by side must hold together, as with `and`."""
        parts = []
        while not parts or self.tokens and self.tokens[0] != ")" and (word == "and") == (self.tokens[0] != "or"):
            if self.tokens[0] == word:
                self.tokens.pop(0)
            parts.append(self.joined("and") if word == "or" else self.one())
        return word, parts
    def one(self):
        token = self.tokens.pop(0)
        if token == "not":
            return "not", [self.one()]
        if token == "(":
            inner = self.joined("or")
            self.tokens.pop(0)
            return inner
        name, operator, value = TERM.match(token).groups()
        if self.bare and name not in WORDS and not name.startswith("field."):
            name = "field." + name
        return name.replace('"', ""), operator, value
    def holds(self, subject, tree=None):
        word, *rest = tree or self.tree
        if len(rest) == 2:
            return term_holds(subject, word, *rest)
        results = (self.holds(subject, part) for part in rest[0])
        return not next(results) if word == "not" else any(results) if word == "or" else all(results)

def field_holds(known, name, operator, value):
    values = [one for key, one in known if key == name or re.fullmatch(re.escape(name) + r"#\d+", key)]
    if operator == "!=":
        return bool(values) and not any(value_holds(one, "=", value) for one in values)
    return any(value_holds(one, operator, value) for one in values)

def term_holds(subject, name, operator, value):
    """One term of something that has what `subject` says: of what it does not have, no term holds."""
    if name.startswith("field."):
        return field_holds(subject["fields"], name[6:], operator, value)
    known = subject.get(name)
    if known is None:
        return False
    if name in ("dur", "cpu", "queue", "sleep"):
        return value_holds(known, operator, str(duration(value)))
    if name == "level":
        return value_holds(-LEVELS.index(known), operator, str(-LEVELS.index(value.upper())))
    plain = value[1:-1] if value.startswith('"') else value
    holds = (any(site and names_fit(plain, site.name, site.target) for site in known) if name == "span" else
             any(fits(plain, one) for one in known))
    return holds == (operator == "=")

class Subjects:
    """What conditions ask of the spans, records and typed events of a model. `alone`: by what an event says itself."""
    def __init__(self, model, schemas, alone=False):
        self.model, self.schemas, self.alone = model, schemas, alone
    def around(self, process, key):
        seen = set()
        while key and (process, key) in self.model.spans and key not in seen:
            seen.add(key)
            yield self.model.spans[process, key]
            key = self.model.spans[process, key].parent
    def sites(self, process, key):
        return None if self.alone else [span.site for span in self.around(process, key)]
    def span(self, span):
        # Of a span its own name counts, of an event the names of all spans around it.
        threads = {piece.thread for piece in span.slices if piece.end is None} | {span.closer} - {None}
        return {"span": [span.site], "target": [span.site and span.site.target], "fields": keyed(span.fields),
                "thread": [self.model.thread_json(span, key)["name"] for key in threads],
                "dur": lasts(self.model, span) if span.state == "closed" else None,
                **({name[:-3]: nanos for name, nanos in self.model.times(span).items()} if span.state == "closed" else {})}
    def record(self, record):
        event, site, process = record.event, record.site, record.event.ring.process
        span = None if self.alone else self.model.spans.get((process, record.span))
        fields = keyed({**(span.fields if span else {}), **record.fields})
        return {"span": self.sites(process, record.span), "target": [site and site.target], "fields": fields,
                "level": site.level if site and event.code == EVENT else None, "thread": [record.thread.name],
                "event": [site and site.name] if event.code != COUNTER else None}
    def typed(self, event):
        schema = self.schemas[event.ring.index]
        name = schema.name(event.code)
        source = "".join(word.capitalize() for word in name.split("_")) if name else None
        return {"event": [name, source, str(event.code)], "fields": list(typed_fields(schema, event)),
                "span": self.sites(event.ring.process, schema.named_words(event.ext).get("span"))}

def typed_fields(schema, event):
    """Fields by their paths, extension words by their names and by their keys in JSON."""
    words = schema.named_words(event.ext)
    yield from flat([], schema.decode(event.code, event.payload) or {})
    yield from words.items()
    yield from ((name, words[name + "_" + kind]) for name, kind in schema.words.values() if kind)

def keyed(fields):
    return [(key, value) for key, (kind, value) in fields.items() if kind != 11]

def choose(model, schemas, where=None, spans=(), min_duration=None):
    """The selected spans, records and typed events: each option chooses a set, and all must hold."""
    subjects, tests = Subjects(model, schemas), []
    if where:
        tests.append(Condition(where).holds)
    if spans:
        tests.append(lambda subject: any(site and {site.name, site.target + "::" + site.name} & set(spans)
                                         for site in subject.get("own", [])))
    if min_duration:
        tests.append(lambda subject: subject.get("lasts", -1) >= duration(min_duration))
    chosen, records, typed = set(model.spans), list(model.records), list(model.typed)
    for test in tests:
        roots = {key for key, span in model.spans.items() if test(
            {**subjects.span(span), "own": [span.site], "lasts": lasts(model, span, False)})}
        inside = {key for key in model.spans if any((one.process, one.id) in roots for one in subjects.around(*key))}
        chosen &= inside
        records = [one for one in records if (one.event.ring.process, one.span) in inside
                   or test(subjects.record(one))]
        typed = [one for one in typed if (one.ring.process, schemas[one.ring.index].named_words(one.ext).get("span"))
                 in inside or test(subjects.typed(one))]
    return chosen, records, typed

def lasts(model, span, named=True):
    """The duration, or of a span of which an end is lost the time between known events: `dur` takes also those in
    which others name the span, `--min-duration` only its own."""
    begin = span.begin or (model.first[span.process, span.id] if named else span.own or span.last)
    return (span.end or (model.last[span.process] if span.state == "open" else span.last)) - begin
