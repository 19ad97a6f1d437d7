"""Imports run one way, the kits name no feature, and the packaging lists all packages."""

import ast
import re
import subprocess
import sys
from configparser import ConfigParser
from functools import cache
from graphlib import TopologicalSorter

import pytest

from tests.helpers import ROOT

# A module imports only from its own layer and from the layers above it in this list.
LAYERS = (
    {"config", "logs", "cli", "plurals", "progress", "characters", "graphemes", "markdown"},
    {"db"},
    {"web"},
    {"search"},
    {"accounts"},
    {"posts"},
    {"comments", "images"},
    {"invitations"},
    {"notifications", "changes"},
    {"moderation"},
    {"site"},
    {"pages"},
    {"ops"},
    {"app", "commands"},
    {"wsgi", "testbed", "testing", "__main__"},
)
# pytest loads the plugin wherever Posting is installed, so the plugin imports Posting only if used.
LAZY = {"posting", "posting.testing"}
# The commands use `posting.cli`, which imports them when one is looked up.
BACKWARD_IMPORTS = {("posting.cli", "posting.commands")}
KITS = ("markdown", "db", "web", "search")
FEATURE_WORDS = {
    *("post", "posts", "comment", "comments", "image", "images", "user", "users"),
    *("invitation", "invitations", "notification", "notifications", "report", "reports"),
}
# The identifiers in the kits that name a feature nevertheless, with the reason.
EXCEPTIONS = {
    ("posting.web.endpoint", "post"): "the method POST of a blueprint",
    ("posting.web.access_log", "user_id"): "a line says who sent the request, from `flask.g`",
    ("posting.web.audit", "user"): "a line says who sent the request, from `flask.g`",
    ("posting.web.idempotency", "user_id"): "a column: two users may send the same key",
}
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
    """Return the modules that a module imports: those of Posting, and all others.

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
    forward = {other for other in own if (module, other) not in BACKWARD_IMPORTS}
    return forward - {"posting"}, imported - own


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


def identifiers(module):
    """Return the identifiers in the code of a module, but not those that Python defines."""
    names = set()
    for node in ast.walk(parse(module)):
        for field, value in ast.iter_fields(node):
            if (type(node), field) != (ast.Constant, "value"):
                values = value if isinstance(value, list) else [value]
                names.update(name for name in values if isinstance(name, str))
    return {name for name in names if not re.fullmatch("__.*__", name)}


def names_a_feature(identifier):
    words = re.findall("[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)
    return not FEATURE_WORDS.isdisjoint(word.lower() for word in words)


@pytest.mark.parametrize("name", ["user_id", "PostList", "HTTPPost", "IMAGES", "_comment", "aUser"])
def test_a_feature_is_recognized_in_a_part_of_an_identifier(name):
    assert names_a_feature(name)


@pytest.mark.parametrize("name", ["posting", "postgres", "username", "imaginary", "commented"])
def test_other_words_name_no_feature(name):
    assert not names_a_feature(name)


def test_the_kits_name_no_feature():
    """Migrations are excepted: they create the tables of the features."""
    found = {
        (module, name)
        for module in MODULES
        if package_of(module + ".") in KITS and "migrations.versions" not in module
        for name in identifiers(module)
        if names_a_feature(name)
    }
    assert found - EXCEPTIONS.keys() == set()
    assert EXCEPTIONS.keys() - found == set()  # no longer needed


def test_the_kit_of_the_database_knows_no_request():
    for module in MODULES:
        if module.startswith("posting.db"):
            assert identifiers(module).isdisjoint({"g", "request", "has_request_context"}), module
            assert not any(name.startswith("werkzeug") for name in imports(module)[1]), module


def calls(module):
    """Yield the calls in a module with their first arguments, such as `sa.insert(Post)`."""
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.Call):
            yield f"{ast.unparse(node.func)}({ast.unparse(node.args[0]) if node.args else ''})"


def modules_that_call(pattern):
    call = re.compile(pattern, re.DOTALL)
    return {module for module in MODULES if any(map(call.fullmatch, calls(module)))}


WRITING = re.compile(r"(INSERT INTO|UPDATE|DELETE FROM) (posts|comments|users)\b", re.IGNORECASE)


def has_text(module, pattern):
    """Return whether a module has a text that matches a pattern. Migrations are left out."""
    texts = (node.value for node in ast.walk(parse(module)) if isinstance(node, ast.Constant))
    is_migration = module.startswith("posting.db.migrations")
    return not is_migration and any(pattern.search(str(text)) for text in texts)


STORES = {"posting.accounts.store", "posting.comments.store", "posting.posts.store"}
# These update what the index does not contain: the author, comments and images of a post.
UPDATING = {"posting.comments.threads", "posting.images.queries", "posting.ops.search"}
SEARCHED = {"title", "content"}  # columns of posts and comments


def test_one_module_of_a_feature_writes_what_is_searched():
    """Elsewhere, a row could miss in the search index. An import indexes all rows at its end."""
    writes = (
        r"(\w+\.)*(\w*(insert|upsert)\((\w+\.)*(Post|Comment|User)(\.__table__)?"
        r"|(delete|edit)\((\w+\.)*(Post|Comment)(\.__table__)?"  # names go with their user
        r"|INDEX\.(add|replace|remove)\(.*)\)"
    )
    assert modules_that_call(writes) == STORES
    tables = r"(\w+\.)*(Post|Comment|User)\.__table__\.(insert|update|delete)\(.*\)"
    assert modules_that_call(tables) == set()
    assert {module for module in MODULES if has_text(module, WRITING)} == set()
    updates = r"(\w+\.)*update\((\w+\.)*(Post|Comment)(\.__table__)?\)"
    assert (
        modules_that_call(updates) == {"posting.comments.store", "posting.posts.store"} | UPDATING
    )


@pytest.mark.parametrize("module", sorted(UPDATING))
def test_other_updates_leave_the_text_that_is_searched(module):
    assert SEARCHED.intersection(named_values(module)) == set()


def named_values(module):
    """Yield the names in a module to which values are given: keywords of calls, and keys of dicts.

    A key can be a text or a column, such as `Post.title`.
    """
    for node in ast.walk(parse(module)):
        if isinstance(node, ast.keyword):
            yield node.arg
        elif isinstance(node, ast.Dict):
            for key in node.keys:
                yield key.attr if isinstance(key, ast.Attribute) else getattr(key, "value", None)


def test_rows_are_read_and_written_by_statements():
    """The session of the ORM is for shells and tests; one module begins and ends it."""
    of_the_orm = {"expire", "expire_all", "populate_existing", "refresh", "synchronize_session"}
    for module in MODULES:
        assert identifiers(module).isdisjoint(of_the_orm), module
    sessions = modules_that_call(r"db\.session\..*")
    assert sessions == {"posting.db.transactions"}


def test_transactions_begin_by_our_own_functions():
    """The `begin` of an engine or a connection sends nothing, so each statement would commit."""
    assert modules_that_call(r".*(engine|connection)\.begin\(.*\)") == set()
    assert modules_that_call(r".*engine(\(.*\)|\))?\.connect\(\)") == {
        "posting.db.group_commit",
        "posting.db.migrations.revisions",
        "posting.db.migrations.upgrades",
        "posting.db.transactions",
    }


def test_only_one_module_imports_flask_login():
    importing = {module for module in MODULES if "flask_login" in imports(module)[1]}
    assert importing == {"posting.accounts.current_user"}


# The names that modules set and read in `flask.g`.
SET_IN_G = {
    "posting.accounts.current_user": {"user_id"},
    "posting.accounts.passwords": {"user_id"},
    "posting.web.access_log": {"started", "user_id"},
    "posting.web.headers": {"request_id"},
}
READ_IN_G = {
    "posting.logs": {"request_id"},
    "posting.moderation.views.records": {"user_id"},
    "posting.search.results": {"user_id"},
    "posting.web.access_log": {"request_id", "started", "user_id"},
    "posting.web.audit": {"user_id"},
    "posting.web.errors": {"request_id"},
    "posting.web.headers": {"request_id"},
    "posting.web.idempotency": {"user_id"},
}


def names_in_g(module, *contexts):
    """Return the names of `flask.g` that a module uses in contexts: in `ast.Load`, it reads them.

    `g.get("name")` reads as well. All other uses, such as `vars(g)`, have the name "g".
    """
    parents = {
        child: node for node in ast.walk(parse(module)) for child in ast.iter_child_nodes(node)
    }
    names = set()
    for node, parent in parents.items():
        if "g" not in {getattr(node, "id", None), getattr(node, "attr", None)}:
            continue
        if not isinstance(parent, ast.Attribute):
            names.add("g")
        elif isinstance(parent.ctx, contexts):
            call = parents[parent]
            is_get = parent.attr == "get" and isinstance(call, ast.Call)
            names.add(call.args[0].value if is_get else parent.attr)
    return names


def test_few_modules_set_and_read_what_is_in_g():
    """What a function needs is in its arguments."""
    changed = {module: names_in_g(module, ast.Store, ast.Del) for module in MODULES}
    assert {module: names for module, names in changed.items() if names} == SET_IN_G
    read = {module: names_in_g(module, ast.Load) for module in MODULES}
    assert {module: names for module, names in read.items() if names} == READ_IN_G


# Commands, Alembic and Pillow, which a worker must not load.
INNER_IMPORTS = {"posting.cli": 1, "posting.db.migrations": 2, "posting.ops.commands.demo": 1}


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
    unneeded = {"alembic", "flask_migrate", "posting.commands", "posting.ops", "PIL"}
    script = "import sys; from posting import create_app; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "posting.app" in process.stdout.split()
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
