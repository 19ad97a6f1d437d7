"""Imports run one way, and the packaging lists what there is."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = (  # a module may import what stands on its own floor or below
    {"config", "database", "files", "moments", "progress"},
    {"models", "secret_key", "invariants", "fields"},
    {"schemas", "migrations", "logs", "columns"},
    {
        "protocol",
        "sessions",
        "locked",
        "deletion",
        "moderation",
        "imaging",
        "demo",
        "archive",
        "archive_lines",
        "backup",
        "doctor",
    },
    {"cli", "blueprints"},
    {"factory"},
    {"posting", "create_app", "wsgi", "testbed", "testing"},
)
# pytest loads the plugin in every run where Posting is installed, used or not.
LAZY = {"posting", "posting.testing"}
MODULES = sorted((ROOT / "posting").rglob("*.py"))


def room(module: str) -> str:
    return module.removeprefix("posting.").partition(".")[0]


def floor(module: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room(module) in rooms)


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "posting":
            yield from (f"posting.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_run_one_way(path):
    module = name_of(path)
    for imported in imports(path):
        if imported.startswith("posting."):
            assert floor(imported) <= floor(module), f"{module} imports {imported}"
            if module.startswith("posting.blueprints."):
                assert not imported.startswith("posting.blueprints"), f"{module}: {imported}"
            if module == "posting.schemas":
                assert room(imported) in {"config", "database", "moments", "fields"}
        if imported == "flask_login":
            assert module == "posting.sessions"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_stand_at_the_top(path):
    if name_of(path) in LAZY:
        return
    tree = ast.parse(path.read_text())
    inner = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    if path == ROOT / "posting" / "cli" / "demo.py":  # Pillow stays out of the server's process
        [demo] = inner
        inner.remove(demo)
    assert inner == []


def test_a_server_does_not_import_the_demo():
    code = (
        "import sys, posting; posting.create_app({'TESTING': True, 'DATABASE_URL': 'sqlite://'});"
        "print('posting.demo' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout == b"False\n"


def test_every_package_is_listed():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    assert listed == {name_of(path) for path in MODULES if path.name == "__init__.py"}
