"""Runs the queries of docs/QUERIES.md with DuckDB.

Called with the directory of the Parquet files, and a JSON object of queries by name. Prints the rows of each.
"""

import json
import os
import sys

import duckdb


def main():
    directory, queries_path = sys.argv[1:]
    with open(queries_path, encoding="utf-8") as file:
        queries = json.load(file)
    os.chdir(directory)
    answers = {}
    for name, query in queries.items():
        found = duckdb.sql(query)
        columns = found.columns
        answers[name] = [dict(zip(columns, row)) for row in found.fetchall()]
    print(json.dumps(answers, default=str))


main()
