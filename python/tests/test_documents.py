"""The examples of PYTHON.md and the notebook run."""

import json
import os
import pathlib
import re
import shutil

from conftest import ROOT


def run_in(directory, code):
    before = os.getcwd()
    os.chdir(directory)
    try:
        exec(compile(code, "example", "exec"), {})
    finally:
        os.chdir(before)


def with_paths(code):
    return code.replace('open("shop")', 'open("./shop")')


def test_the_examples_of_the_document_run(place):
    shutil.copy(place / "shop.evc", place / "trace.evc")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "PYTHON.md").read_text(), re.DOTALL)
    assert len(blocks) == 4
    run_in(place, with_paths("\n".join(blocks)))


def test_the_notebook_runs(place):
    notebook = json.loads(pathlib.Path(ROOT / "python" / "examples" / "tail.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 2
    run_in(place, with_paths("\n".join(cells)))
