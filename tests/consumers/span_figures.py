"""Computes the figures of spans from an export as JSON lines, with DuckDB."""

import json
import sys
import tempfile

import duckdb

COLUMNS = {
    "type": "VARCHAR",
    "name": "VARCHAR",
    "target": "VARCHAR",
    "duration_ns": "UBIGINT",
    "instructions": "UBIGINT",
    "self_instructions": "UBIGINT",
    "slices": "STRUCT(start_ns UBIGINT, end_ns UBIGINT)[]",
}
QUERY = """
    SELECT name, target, count(*) AS count, sum(duration_ns)::UBIGINT AS total_ns,
        sum(list_sum([s.end_ns - s.start_ns for s in slices]))::UBIGINT AS busy_ns,
        quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.9) AS p90_ns,
        quantile_disc(duration_ns, 0.99) AS p99_ns, max(duration_ns) AS max_ns,
        sum(instructions)::UBIGINT AS instructions, sum(self_instructions)::UBIGINT AS self_instructions,
        min(instructions) AS min_instructions, max(instructions) AS max_instructions,
        count(instructions) AS counted_spans
    FROM read_json(?, format = 'newline_delimited', columns = {columns})
    WHERE type = 'span' AND duration_ns IS NOT NULL
    GROUP BY name, target
"""

# Lines of other types have other types under the same names.
spans = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
with open(sys.argv[1]) as lines:
    spans.writelines(line for line in lines if json.loads(line)["type"] == "span")
spans.flush()
found = duckdb.execute(QUERY.replace("{columns}", str(COLUMNS)), [spans.name])
names = [column[0] for column in found.description]
json.dump([dict(zip(names, row)) for row in found.fetchall()], sys.stdout)
