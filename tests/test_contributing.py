"""CONTRIBUTING.md names files that exist, and its recipe for a field leads to one in the API."""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from textwrap import dedent, indent

import pytest

from tests.conftest import POSTGRES
from tests.helpers import ROOT

GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
RECIPES = dict(re.findall(r"^## (Add .*)\n((?:(?!## ).*\n)*)", GUIDE, re.MULTILINE))
# Creates a post with and without a subtitle, and prints what the API and its document say.
SCRIPT = """
import json
from posting import create_app

app = create_app({"TESTING": True})
client = app.test_client()
credentials = {"username": "ada", "password": "a long walk by the sea"}
assert client.post("/signup", json=credentials).status_code == 201
assert client.post("/signin", json=credentials).status_code == 200
post = {"title": "On engines", "content": "They weave algebra."}
created = client.post("/posts", json=post | {"subtitle": "A story"}).json
other = client.post("/posts", json=post).json
print(json.dumps({
    "created": created["subtitle"],
    "read": client.get(f"/posts/{created['id']}").json["subtitle"],
    "edited": client.patch(f"/posts/{other['id']}", json={"subtitle": "B"}).json["subtitle"],
    "absent": other["subtitle"],
    "too long": client.post("/posts", json=post | {"subtitle": "x" * 201}).status_code,
    "document": json.loads(app.test_cli_runner().invoke(args=["openapi", "print"]).stdout),
}))
"""


def test_the_guide_has_a_recipe_for_each_common_change():
    assert set(RECIPES) == {
        f"Add {change}"
        for change in ("a field", "a migration", "an endpoint", "a setting", "a command")
    }


def steps(recipe):
    """Return the file and the text of each step of a recipe."""
    found = re.findall(r"^\d\. `(.*?)`: (.*(?:\n(?!\d\. ).*)*)", RECIPES[recipe], re.MULTILINE)
    assert len(found) == len(re.findall(r"^\d\. ", RECIPES[recipe], re.MULTILINE))
    return dict(found)


def code_blocks(text, language="python"):
    """Return each block of code in a text, with the words before it."""
    found = re.findall(rf"(.*?)```{language}\n(.*?)```", text, re.DOTALL)
    return [(words, dedent("   " + code).strip()) for words, code in found]


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_file_of_a_recipe_exists(recipe):
    prose = re.sub(r"```.*?```", "", RECIPES[recipe], flags=re.DOTALL)
    named = re.findall(r"`((?:posting|tests|docs)/[\w/.<>-]*|[A-Z]+\.md)`", prose)
    assert steps(recipe).keys() <= set(named)
    for path in named:
        assert [*ROOT.glob(re.sub("<.*?>", "*", path).rstrip("/"))], path


@pytest.fixture
def checkout(tmp_path):
    """A copy of the package, whose database is in the copy too."""
    shutil.copytree(
        ROOT / "posting", tmp_path / "posting", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


@pytest.fixture
def python(checkout):
    """Run Python in the copy, and return its output."""
    environment = {name: value for name, value in os.environ.items() if "POSTING" not in name}

    def python(*arguments):
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return python


@pytest.mark.skipif(bool(POSTGRES), reason="creates a database of its own, on SQLite")
def test_a_field_added_by_the_recipe_is_in_the_api_and_its_document(checkout, python):
    for path, text in steps("Add a field").items():
        for words, code in code_blocks(text):
            target = re.search(r"`([A-Z][\w.]*)`", words)[1]
            add(checkout / path, target, code)
    migrate(checkout, python)
    shown = json.loads(python("-c", SCRIPT))
    document = shown.pop("document")
    assert shown == {
        "created": "A story",
        "read": "A story",
        "edited": "B",
        "absent": None,
        "too long": 422,
    }
    request = document["paths"]["/posts"]["post"]["requestBody"]
    response = document["paths"]["/posts/{id}"]["get"]["responses"]["200"]
    for message in (request, response):
        schema = message["content"]["application/json"]["schema"]
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert schema["properties"]["subtitle"]["examples"] == ["A story"]


def add(file, target, code):
    """Append code to a class of a file, or to a tuple in that class."""
    name, _, attribute = target.partition(".")
    source = file.read_text()
    [scope] = [node for node in ast.parse(source).body if getattr(node, "name", None) == name]
    assignments = {
        ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]): node
        for node in scope.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    if attribute:
        values = ast.walk(assignments[attribute].value)
        last = next(node for node in values if isinstance(node, ast.Tuple | ast.List)).elts[-1]
        code = f", {code}"
    else:
        last = [*assignments.values()][-1]
        code = "\n" + indent(code, "    ")
    lines = source.splitlines(keepends=True)
    line = lines[last.end_lineno - 1]
    lines[last.end_lineno - 1] = line[: last.end_col_offset] + code + line[last.end_col_offset :]
    file.write_text("".join(lines))


def migrate(checkout, python):
    """Run the commands of the recipe for a migration, and edit the file that Alembic writes."""
    [(path, text)] = [
        (path, text) for path, text in steps("Add a migration").items() if "```" in text
    ]
    folder = (checkout / path).parent
    before = set(folder.glob("*.py"))
    number = f"{1 + max(int(file.name[:4]) for file in before if file.name[:4].isdigit()):04}"
    [(_, commands)] = code_blocks(text, "console")
    for command in commands.replace("NUMBER", number).splitlines():
        python("-m", "flask", "--app", "posting", *shlex.split(command.partition("flask ")[2]))
    [file] = set(folder.glob("*.py")) - before
    head, _, generated = file.read_text().partition("def upgrade")
    assert "subtitle" in generated
    [(_, code)] = code_blocks(text.rpartition("```console")[2])
    file.write_text(f"{head}{code}\n")
    python("-m", "flask", "--app", "posting", "db", "upgrade")
