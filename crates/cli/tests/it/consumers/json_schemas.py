"""Validates answers with PyPI's jsonschema. The argument is a file with a line for each answer: [verb, schema, answer].
Prints how many answers of each verb fit, and those that do not. Of each answer, wrong ones are made, which must not fit."""

import copy
import json
import sys

from jsonschema import Draft202012Validator


def wrong(answer):
    """Yields the answer with something that no answer of the verb has."""
    more = copy.deepcopy(answer)
    more["no such key"] = "text"
    yield more
    yield [answer]
    less = copy.deepcopy(answer)
    less.pop(next(iter(less)))
    yield less


fitting, bad, not_refused = {}, [], []
with open(sys.argv[1]) as lines:
    for line in lines:
        verb, schema, answer = json.loads(line)
        Draft202012Validator.check_schema(schema)
        validator = Draft202012Validator(schema)
        errors = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(answer)]
        if errors:
            bad.append([verb, errors])
        else:
            fitting[verb] = fitting.get(verb, 0) + 1
        not_refused += [verb for other in wrong(answer) if validator.is_valid(other)]
json.dump({"fitting": fitting, "bad": bad, "not_refused": not_refused}, sys.stdout)
