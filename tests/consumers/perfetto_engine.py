"""Asks the trace_processor in a page that shows a Perfetto UI."""
import json

ASK = """
async (sql) => {
    const result = await app.trace.engine.query(sql);
    const columns = result.columns();
    const rows = [];
    for (const it = result.iter({}); it.valid(); it.next()) {
        const row = {};
        for (const column of columns) {
            const value = it.get(column);
            // JSON has no bigints. The text of a bigint gets a mark, and Python makes an int of it.
            row[column] = typeof value === 'bigint' ? `bigint ${value}` : value;
        }
        rows.push(row);
    }
    return JSON.stringify(rows);
}
"""


def plain(value):
    return int(value[7:]) if isinstance(value, str) and value.startswith("bigint ") else value


def ask(page, sql):
    return [{column: plain(value) for column, value in row.items()} for row in json.loads(page.evaluate(ASK, sql))]
