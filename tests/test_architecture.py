"""Imports run one way and in no circle, and the packaging lists what there is."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from graphlib import TopologicalSorter

import pytest

from tests.helpers import ROOT

# A module imports from its own layer and from those above it in this list.
LAYERS = (
    {"config", "logs", "db"},
    {"http", "schemas"},
    {"auth", "domain"},
    {"blueprints", "cli", "ops"},
    {"factory", "wsgi", "testbed", "testing"},
)
# pytest loads the plugin in every run where Posting is installed, used or not.
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


def imports(module):
    """Return the modules of Posting that a module imports at its top, and all other modules."""
    own, others = set(), set()
    for node in ast.parse(MODULES[module].read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            own |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            own |= {alias.name for alias in node.names}
    others = {name for name in own if name not in MODULES}
    return own - others - {"posting"}, others


@pytest.mark.parametrize("module", [name for name in MODULES if name != "posting"])
def test_imports_run_one_way(module):
    for imported in imports(module)[0]:
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}"


def test_modules_import_in_no_circle():
    graph = {module: imports(module)[0] for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())


def test_packages_import_in_no_circle():
    graph = {}
    for module in MODULES:
        if module != "posting":
            used = {package_of(imported) for imported in imports(module)[0]}
            graph.setdefault(package_of(module), set()).update(used - {package_of(module)})
    assert list(TopologicalSorter(graph).static_order())


def test_only_one_module_knows_flask_login():
    knowing = {module for module in MODULES if "flask_login" in imports(module)[1]}
    assert knowing == {"posting.auth.current_user"}


@pytest.mark.parametrize("module", MODULES)
def test_imports_stand_at_the_top(module):
    if module in LAZY:
        return
    tree = ast.parse(MODULES[module].read_text())
    inner = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    if module == "posting.cli.demo":  # Pillow stays out of the server's process
        [demo] = inner
        inner.remove(demo)
    assert inner == []


def test_a_server_does_not_import_the_demo():
    code = (
        "import sys, posting; posting.create_app({'TESTING': True, 'DATABASE_URL': 'sqlite://'});"
        "print('posting.ops.demo' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout == b"False\n"


def test_every_package_is_listed():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    listed = set(setup["options"]["packages"].split())
    assert listed == {module for module, path in MODULES.items() if path.name == "__init__.py"}
