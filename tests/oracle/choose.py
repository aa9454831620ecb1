"""Selections (CLI.md, "Selecting events" and "Comparing"): conditions, the options that say the same, and windows."""

import math
import re
from decimal import Decimal

from perf import EVENT, LEVELS, MARKER, field_json

TOKEN = re.compile(r'\s*(\(|\)|(?:"(?:[^"\\]|\\.)*"|!=|<=|>=|=|<|>|[^\s()"=<>!])+)')
TERM = re.compile(r'((?:"[^"]*"|[^=<>!"])+)(!=|<=|>=|=|<|>)(.*)$', re.S)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$", re.A)
INFINITE = re.compile(r"[+-]?inf(inity)?$", re.I)
UNITS = {"ns": 1, "us": 1000, "µs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def duration(text):
    return sum(int(Decimal(number) * UNITS[unit]) for number, unit in re.findall(r"([\d.]+)(ns|us|µs|ms|s|m|h)", text))


def fits(pattern, text):
    return text is not None and re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.S) is not None


def names_fit(pattern, name, target):
    return fits(pattern, name) or "::" in pattern and target is not None and fits(pattern, target + "::" + name)


def kinds_of(value):
    """A value as (number, text, truth), each None if it is not one."""
    if isinstance(value, bool):
        return None, None, value
    if isinstance(value, (int, float)):
        return (Decimal(repr(value)) if not isinstance(value, float) or math.isfinite(value) else value), None, None
    if not isinstance(value, str):
        return None, None, None
    number = Decimal(value) if NUMBER.match(value) else float(value) if INFINITE.match(value) else None
    return number, value, {"true": True, "false": False}.get(value)


def value_holds(value, operator, wanted):
    """One field's value against what the condition says; `!=` is decided by the caller."""
    number, text, truth = kinds_of(value)
    if wanted.startswith('"'):
        quoted = wanted[1:-1].replace('\\"', '"')
        if text is None:
            return False
        if operator == "=":
            return fits(quoted, text)
        a, b = text.encode(), quoted.encode()
    else:
        other, word, other_truth = kinds_of(wanted)
        if wanted.lower().lstrip("+-") == "nan":
            return operator == "=" and isinstance(number, float) and math.isnan(number)
        if other is None:
            if other_truth is not None and operator == "=":
                return truth is other_truth
            return operator == "=" and text is not None and fits(word, text)
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
        self.tokens, self.at, self.bare = TOKEN.findall(text), 0, bare_fields
        self.tree = self.either()
        if self.at != len(self.tokens):
            raise ValueError("the condition ends too early: " + text)

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def either(self):
        parts = [self.both()]
        while self.peek() == "or":
            self.at += 1
            parts.append(self.both())
        return ("or", parts)

    def both(self):
        parts = [self.one()]
        while self.peek() not in (None, "or", ")"):
            self.at += self.peek() == "and"
            parts.append(self.one())
        return ("and", parts)

    def one(self):
        token, self.at = self.peek(), self.at + 1
        if token == "not":
            return ("not", self.one())
        if token == "(":
            inner, self.at = self.either(), self.at + 1
            return inner
        name, operator, value = TERM.match(token).groups()
        if self.bare and name not in ("span", "event", "target", "thread", "level") and not name.startswith("field."):
            name = "field." + name
        return ("term", name.replace('"', ""), operator, value)

    def holds(self, test, tree=None):
        tree = tree or self.tree
        if tree[0] == "term":
            return test(*tree[1:])
        if tree[0] == "not":
            return not self.holds(test, tree[1])
        return (any if tree[0] == "or" else all)(self.holds(test, part) for part in tree[1])


def unquoted(text):
    return text[1:-1] if text.startswith('"') else text


def source_name(name):
    return "".join(word.capitalize() for word in name.split("_")) if name else None


class Tester:
    """Says which spans, records and typed events of a model fulfil a condition."""

    def __init__(self, model, schemas, alone=False):
        # `alone`: by what an event says itself, as `find` does it.
        self.model, self.schemas, self.alone = model, schemas, alone

    def around(self, process, key):
        seen = set()
        while key and (process, key) in self.model.spans and key not in seen:
            seen.add(key)
            span = self.model.spans[process, key]
            yield span
            key = span.parent

    def field(self, known, name, operator, value):
        values = [one for key, one in known if key == name or re.fullmatch(re.escape(name) + r"#\d+", key)]
        if operator == "!=":
            return bool(values) and not any(value_holds(one, "=", value) for one in values)
        return any(value_holds(one, operator, value) for one in values)

    def named(self, operator, holds):
        return holds if operator == "=" else not holds

    def span(self, span, condition, fields=None):
        site, threads = span.site, {piece.thread for piece in span.slices if piece.end is None} | {span.closer}

        def test(name, operator, value):
            if name == "span":
                # Of a span its own name counts, of an event the names of all spans around it.
                return self.named(operator, bool(site) and names_fit(unquoted(value), site.name, site.target))
            if name == "target":
                return self.named(operator, bool(site) and fits(unquoted(value), site.target))
            if name == "dur":
                # Of a span whose begin is lost, the time between known events counts.
                known = span.state == "closed"
                return known and value_holds(lasts(self.model, span), operator, str(duration(value)))
            if name == "thread":
                names = [self.model.thread_json(span, key)["name"] for key in threads if key is not None]
                return any(fits(unquoted(value), one) for one in names)
            if name.startswith("field."):
                return self.field(keyed(fields or span.fields), name[6:], operator, value)
            return False

        return condition.holds(test)

    def record(self, record, condition):
        event, site, process = record.event, record.site, record.event.ring.process

        def test(name, operator, value):
            if name == "span":
                return self.named(operator, not self.alone and any(
                    one.site and names_fit(unquoted(value), one.site.name, one.site.target)
                    for one in self.around(process, record.span)))
            if name == "target":
                return self.named(operator, bool(site) and fits(unquoted(value), site.target))
            if name == "level" and event.code == EVENT and site and site.level:
                place = LEVELS.index(value.upper())
                mine = LEVELS.index(site.level)
                return {"=": mine == place, "!=": mine != place, ">=": mine <= place, ">": mine < place,
                        "<=": mine >= place, "<": mine > place}[operator]
            if name == "event" and event.code in (EVENT, MARKER):
                return self.named(operator, bool(site) and fits(unquoted(value), site.name))
            if name == "thread":
                return self.named(operator, fits(unquoted(value), record.thread.name))
            if name.startswith("field."):
                known = keyed(record.fields)
                span = self.model.spans.get((process, record.span))
                if span and not self.alone:
                    own = {key for key, _ in known}
                    known = known + [(key, one) for key, one in keyed(span.fields) if key not in own]
                return self.field(known, name[6:], operator, value)
            return False

        return condition.holds(test)

    def typed(self, event, condition):
        schema = self.schemas[event.ring.index]
        words = schema.named_words(event.ext)

        def test(name, operator, value):
            if name == "event":
                known, value = schema.name(event.code), unquoted(value)
                return self.named(operator, fits(value, known) or fits(value, source_name(known))
                                  or value == str(event.code))
            if name == "span":
                return self.named(operator, not self.alone and any(
                    one.site and names_fit(unquoted(value), one.site.name, one.site.target)
                    for one in self.around(event.ring.process, words.get("span"))))
            if name.startswith("field."):
                known = list(typed_fields(schema, event))
                return self.field(known, name[6:], operator, value)
            return False

        return condition.holds(test)


def typed_fields(schema, event):
    """Fields by their paths, extension words by their names and by their keys in JSON."""
    words = schema.named_words(event.ext)
    yield from flat([], schema.decode(event.code, event.payload) or {})
    yield from words.items()
    yield from ((name, words[name + "_" + kind]) for name, kind in schema.words.values() if kind)


def keyed(fields):
    return [(key, value) for key, kind, value, _ in fields if kind != 11]


def choose(model, schemas, where=None, spans=(), min_duration=None):
    """The selected spans, records and typed events: each option chooses a set, and all must hold."""
    tester, sets = Tester(model, schemas), []
    if where:
        condition = Condition(where)
        sets.append(({key for key, span in model.spans.items() if tester.span(span, condition)},
                     lambda record: tester.record(record, condition), lambda event: tester.typed(event, condition)))
    if spans:
        sets.append(({key for key, span in model.spans.items() if span.site and any(
            name == span.site.name or name == span.site.target + "::" + span.site.name for name in spans)}, None, None))
    if min_duration:
        sets.append(({key for key, span in model.spans.items() if lasts(model, span, False) >= duration(min_duration)},
                     None, None))
    chosen, records, typed = set(model.spans), list(model.records), list(model.typed)
    for roots, record_holds, typed_holds in sets:
        inside = {key for key in model.spans
                  if any((one.process, one.id) in roots for one in tester.around(*key))}
        chosen &= inside
        records = [one for one in records if (one.event.ring.process, one.span) in inside
                   or record_holds and record_holds(one)]
        typed = [one for one in typed if (one.ring.process, schemas[one.ring.index].named_words(one.ext).get("span"))
                 in inside or typed_holds and typed_holds(one)]
    return chosen, records, typed


def lasts(model, span, named=True):
    """The duration, or of a span of which an end is lost the time between known events: `dur` takes also those in
    which others name the span, `--min-duration` only its own."""
    begin = span.begin or (model.first[span.process, span.id] if named else span.own or span.last)
    return (span.end or (model.last[span.process] if span.state == "open" else span.last)) - begin
