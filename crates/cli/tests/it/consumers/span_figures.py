"""Computes the figures of spans from an export as JSON lines, with DuckDB."""

import json
import sys
import tempfile

import duckdb

COLUMNS = {
    "type": "VARCHAR",
    "process": "UBIGINT",
    "id": "UBIGINT",
    "parent": "UBIGINT",
    "name": "VARCHAR",
    "target": "VARCHAR",
    "start_ns": "UBIGINT",
    "end_ns": "UBIGINT",
    "duration_ns": "UBIGINT",
    "instructions": "UBIGINT",
    "self_instructions": "UBIGINT",
    "cpu_ns": "UBIGINT",
    "queue_ns": "UBIGINT",
    "sleep_ns": "UBIGINT",
    "allocations": "UBIGINT",
    "allocated_bytes": "UBIGINT",
    "slices": "STRUCT(thread STRUCT(id UBIGINT), start_ns UBIGINT, end_ns UBIGINT)[]",
}
# The self time of a span is its duration without the times in which a child existed. Times of children that overlap
# count once: `islands` joins them.
SELF_TIMES = """
    CREATE VIEW self_times AS
    WITH children AS (
        SELECT parent.process, parent.id, greatest(child.start_ns, parent.start_ns) AS begins,
            least(child.end_ns, parent.end_ns) AS ends
        FROM spans AS parent JOIN spans AS child ON child.process = parent.process AND child.parent = parent.id
        WHERE child.start_ns < parent.end_ns
    ), marked AS (
        SELECT *, begins > max(ends) OVER (PARTITION BY process, id ORDER BY begins, ends
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) IS NOT FALSE AS is_new FROM children
    ), numbered AS (
        SELECT *, sum(is_new::INT) OVER (PARTITION BY process, id ORDER BY begins, ends
            ROWS UNBOUNDED PRECEDING) AS island FROM marked
    ), islands AS (
        SELECT process, id, max(ends) - min(begins) AS covered FROM numbered GROUP BY process, id, island
    ), covered AS (
        SELECT process, id, sum(covered) AS covered FROM islands GROUP BY process, id
    )
    SELECT process, id, duration_ns - coalesce(covered, 0) AS self_ns FROM spans LEFT JOIN covered USING (process, id)
"""
# The instructions of a span's own are those of the span without those of its children, if no child is entered on
# another thread or outside of its parent. `diff` gets its own from the replay of enters and exits.
SELF_INSTRUCTIONS = """
    CREATE VIEW self_instructions AS
    SELECT parent.process, parent.id, any_value(parent.instructions) - coalesce(sum(child.instructions), 0) AS of_own
    FROM spans AS parent LEFT JOIN spans AS child ON child.process = parent.process AND child.parent = parent.id
    GROUP BY parent.process, parent.id
"""
QUERY = """
    SELECT name, target, count(*) AS count, sum(duration_ns)::UBIGINT AS total_ns, sum(self_ns)::UBIGINT AS self_ns,
        sum(coalesce(list_sum([s.end_ns - s.start_ns for s in slices]), 0))::UBIGINT AS busy_ns,
        quantile_disc(duration_ns, 0.5) AS p50_ns, quantile_disc(duration_ns, 0.9) AS p90_ns,
        quantile_disc(duration_ns, 0.99) AS p99_ns, max(duration_ns) AS max_ns,
        sum(instructions)::UBIGINT AS instructions, sum(of_own)::UBIGINT AS self_instructions,
        min(instructions) AS min_instructions, max(instructions) AS max_instructions,
        sum(cpu_ns)::UBIGINT AS cpu_ns, sum(queue_ns)::UBIGINT AS queue_ns, sum(sleep_ns)::UBIGINT AS sleep_ns,
        sum(allocations)::UBIGINT AS allocations, sum(allocated_bytes)::UBIGINT AS allocated_bytes,
        nullif(count(instructions), 0) AS counted_spans,
        bool_and(of_own IS NOT DISTINCT FROM self_instructions) AS own_agrees
    FROM spans JOIN self_times USING (process, id) JOIN self_instructions USING (process, id)
    WHERE duration_ns IS NOT NULL
    GROUP BY name, target
"""

# Lines of other types have other types under the same names.
spans = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
with open(sys.argv[1]) as lines:
    spans.writelines(line for line in lines if json.loads(line)["type"] == "span")
spans.flush()
duckdb.execute(
    f"CREATE TABLE spans AS SELECT * FROM read_json(?, format = 'newline_delimited', columns = {COLUMNS})", [spans.name]
)
duckdb.execute(SELF_TIMES)
duckdb.execute(SELF_INSTRUCTIONS)
found = duckdb.execute(QUERY)
names = [column[0] for column in found.description]
json.dump([dict(zip(names, row)) for row in found.fetchall()], sys.stdout)
