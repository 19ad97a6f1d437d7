"""Imports run one way, and the packaging lists all files."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from functools import cache
from graphlib import TopologicalSorter

import pytest

from tests.helpers import ROOT

# A module imports only from its own layer and from the layers above it in this list. A module is in
# the layer that names it, or else its part of a feature, or else its package.
LAYERS = (
    {
        "config",
        "cli",
        "languages",
        "plurals",
        "progress",
        "characters",
        "markdown",
        "outbound",
        "smtp",
    },
    {"db"},
    {"site.models", "site.settings"},
    {"web"},
    {"search"},
    {"*.models", "*.schemas", "*.fields", "images.codec", "files.formats", "mail.mornings"},
    {"outbox"},
    {"attachments"},
    {"changes"},
    {"notifications"},
    {"accounts"},
    {"mail", "push", "webhooks"},
    {"moderation.log", "moderation.store"},
    {"topics"},
    {"posts"},
    {"avatars", "comments", "files", "images", "reactions"},
    {"invitations"},
    {"moderation"},
    {"accounts.deletion", "accounts.export", "moderation.members"},
    {"*.views", "*.commands"},
    {"site"},
    {"pages"},
    {"mail.contents", "mail.channel", "push.channel", "webhooks.channel"},
    {"indexes"},
    {"ops"},
    {"app", "commands"},
    {"wsgi", "testbed", "testing"},
)
FEATURES = {
    *(
        "accounts",
        "avatars",
        "changes",
        "comments",
        "files",
        "images",
        "invitations",
        "mail",
        "moderation",
        "notifications",
        "outbox",
    ),
    "posts",
    "push",
    "reactions",
    "topics",
    "webhooks",
}
# pytest loads the plugin wherever Posting is installed, so the plugin imports Posting only if used.
LAZY = {"posting", "posting.testing"}
# The commands use `posting.cli`, which imports them when one is looked up.
BACKWARD_IMPORTS = {("posting.cli", "posting.commands")}
PACKAGE = ROOT / "posting"
MODULES = {
    ".".join(part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__init__"): (
        path
    )
    for path in sorted(PACKAGE.rglob("*.py"))
}


def layer_of(module):
    _, package, *parts = module.split(".")
    names = [".".join([package, *parts])]
    if package in FEATURES and parts:
        names.append(f"*.{parts[0]}")
    numbers = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    return next(numbers[name] for name in [*names, package] if name in numbers)


@cache
def parse(module):
    return ast.parse(MODULES[module].read_text())


def imports(module):
    """Return the modules of Posting that a module imports.

    Imports in functions count, but those of BACKWARD_IMPORTS do not.
    """
    imported = set()
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    own = imported & MODULES.keys()
    return {other for other in own if (module, other) not in BACKWARD_IMPORTS} - {"posting"}


@pytest.mark.parametrize("module", [name for name in MODULES if name != "posting"])
def test_imports_run_one_way(module):
    for imported in imports(module):
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}"


def test_modules_import_without_cycles():
    graph = {module: imports(module) for module in MODULES}
    assert list(TopologicalSorter(graph).static_order())  # it raises CycleError


# Commands, Alembic and Pillow, which a worker must not load.
INNER_IMPORTS = {"posting.cli": 1, "posting.db.migrations": 2, "posting.ops.commands": 1}


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
    unneeded = {"alembic", "flask_migrate", "posting.commands", "posting.ops.commands", "PIL"}
    script = "import sys; from posting import create_app; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "posting.app" in process.stdout.split()
    assert unneeded.isdisjoint(process.stdout.split())


def test_every_other_file_is_listed():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    patterns = setup["options.package_data"]["posting"].split()
    files = {path for pattern in patterns for path in PACKAGE.glob(pattern) if path.is_file()}
    others = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".py"}
    assert {path for path in others if "__pycache__" not in path.parts} == files
