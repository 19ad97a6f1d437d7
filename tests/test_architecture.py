"""Imports run one way and without cycles, and the packaging lists all packages."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from functools import cache
from graphlib import TopologicalSorter

import pytest

from tests.helpers import ROOT

# A module imports only from its own layer and from the layers above it in this list.
LAYERS = (
    {"config", "logs", "db"},
    {"http", "schemas"},
    {"auth", "domain"},
    {"blueprints", "pages", "cli", "ops"},
    {"factory", "wsgi", "testbed", "testing"},
)
# pytest loads the plugin wherever Posting is installed, so the plugin imports Posting only if used.
LAZY = {"posting", "posting.testing"}
PACKAGE = ROOT / "posting"
MODULES = {
    ".".join(part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__"): (
        path
    )
    for path in sorted(PACKAGE.rglob("*.py"))
}


def package_of(module):
    return module.split(".")[1]


def layer_of(module):
    return next(number for number, layer in enumerate(LAYERS) if package_of(module) in layer)


@cache
def parse(module):
    return ast.parse(MODULES[module].read_text())


def imports(module):
    """Return the modules that a module imports at its top: those of Posting, and all others."""
    imported = set()
    for node in parse(module).body:
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    own = imported & MODULES.keys()
    return own - {"posting"}, imported - own


@pytest.mark.parametrize("module", [name for name in MODULES if name != "posting"])
def test_imports_run_one_way(module):
    for imported in imports(module)[0]:
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}"


def test_modules_import_without_cycles():
    graph = {module: imports(module)[0] for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # it raises CycleError


def test_packages_import_without_cycles():
    graph = {}
    for module in MODULES:
        if module != "posting":
            used = {package_of(imported) for imported in imports(module)[0]}
            graph.setdefault(package_of(module), set()).update(used - {package_of(module)})
    assert list(TopologicalSorter(graph).static_order())


def test_only_one_module_imports_flask_login():
    importing = {module for module in MODULES if "flask_login" in imports(module)[1]}
    assert importing == {"posting.auth.login"}


# Commands, Alembic and Pillow, which a worker must not load.
INNER_IMPORTS = {"posting.cli": 1, "posting.db.migrations": 2, "posting.cli.demo": 1}


@pytest.mark.parametrize("module", MODULES)
def test_imports_are_at_the_top_of_their_module(module):
    if module in LAZY:
        return
    inner = [
        node
        for function in ast.walk(parse(module))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert len(inner) == INNER_IMPORTS.get(module, 0)


def test_a_worker_does_not_import_what_only_commands_need():
    unneeded = {"alembic", "flask_migrate", "posting.cli.commands", "posting.ops", "PIL"}
    script = "import sys; from posting import create_app; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "posting.factory" in process.stdout.split()
    assert unneeded.isdisjoint(process.stdout.split())


def test_every_package_is_listed():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    assert listed == {module for module, path in MODULES.items() if path.name == "__init__.py"}


def test_every_other_file_is_listed():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["posting"].split()
    files = {path for pattern in patterns for path in PACKAGE.glob(pattern) if path.is_file()}
    others = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".py"}
    assert {path for path in others if "__pycache__" not in path.parts} == files
