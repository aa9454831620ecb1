"""Asks the trace_processor in a page that shows a Perfetto UI."""
import json

ASK = """
async (sql) => {
    const result = await app.trace.engine.query(sql);
    const columns = result.columns();
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next()) {
        rows.push(columns.map((column) => {
            const value = it.get(column);
            // JSON has no bigints. The text of a bigint gets a mark, and Python makes an int of it.
            return typeof value === 'bigint' ? `bigint ${value}` : value;
        }));
    }
    return JSON.stringify({ columns, rows });
}
"""
# All that a trace has. `ARGS` stands for a condition on the arguments.
EVERYTHING = {
    "slices": """
        select s.id, s.track_id as track, track.name as title, s.depth, s.ts, s.dur, s.name, s.category,
               s.arg_set_id as args
        from slice s join track on track.id = s.track_id
        order by s.id""",
    "args": "select arg_set_id as args, key, value_type as type, display_value as value from args where ARGS",
    "flows": "select slice_out as begin, slice_in as end from flow order by slice_out, slice_in",
    "counters": """
        select t.name, c.ts, c.value from counter c join counter_track t on t.id = c.track_id order by c.ts""",
    "processes": "select pid, name from process where pid != 0",
    "errors": "select name, value, severity from stats where severity in ('error', 'data_loss') and value != 0",
    "clocks": "select distinct clock_name from clock_snapshot where clock_name is not null order by clock_name",
}


def plain(value):
    return int(value[7:]) if isinstance(value, str) and value.startswith("bigint ") else value


def ask(page, sql):
    answer = json.loads(page.evaluate(ASK, sql))
    return [dict(zip(answer["columns"], map(plain, row))) for row in answer["rows"]]


def ask_everything(page, keys=()):
    """Asks for all that the trace has. If some keys of arguments are named, only these arguments are asked for."""
    condition = f"key in ({', '.join(repr(key) for key in keys)})" if keys else "true"
    answers = {name: ask(page, sql.replace("ARGS", condition)) for name, sql in EVERYTHING.items()}
    args = {}
    for row in answers.pop("args"):
        args.setdefault(row["args"], {})[row["key"]] = [row["type"], row["value"]]
    for slice in answers["slices"]:
        slice["args"] = args.get(slice["args"], {})
    return answers
