"""The recipe for a field, followed by a program, leads to a complete field."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.helpers import ROOT
from tests.helpers.recipes import code_blocks, steps

# Creates a post with and without a subtitle, and prints what the API, its document and pages say.
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
    "listed": [post["subtitle"] for post in client.get("/posts").json][::-1],
    "page": "A story" in client.get(f"/p/{created['id']}").text,
    "page without it": "subtitle" in client.get(f"/p/{other['id']}").text,
    "form": 'name="subtitle"' in client.get("/write").text,
    "edited": client.patch(f"/posts/{other['id']}", json={"subtitle": "B"}).json["subtitle"],
    "absent": other["subtitle"],
    "too long": client.post("/posts", json=post | {"subtitle": "x" * 201}).status_code,
    "document": json.loads(app.test_cli_runner().invoke(args=["openapi", "print"]).stdout),
}))
"""
# Tests that a field of posts concerns.
TESTS = (
    "tests/posts/test_posts.py",
    "tests/db/test_migrations.py::test_each_migration_goes_down_and_up_with_rows",
    "tests/db/test_migrations.py::test_the_migrations_create_the_schema_of_the_models",
    "tests/web/test_openapi.py",
    "tests/web/test_request_body.py::test_other_types_than_text_get_422[POST /posts-true]",
    "tests/live/test_readme.py",
    "tests/ops/test_archive_revisions.py",
    "tests/pages/test_forms.py",
)


@pytest.fixture
def checkout(tmp_path):
    """A copy of this checkout, whose database is in the copy too."""
    for name in ("deploy", "docs", "posting", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for file in ROOT.iterdir():
        if file.is_file() and file.name != ".env":
            shutil.copy(file, tmp_path)
    return tmp_path


@pytest.fixture
def python(checkout, empty_url):
    """Run Python in the copy, with a database of its own, and return its output."""
    environment = {name: value for name, value in os.environ.items() if "POSTING" not in name}

    def python(*arguments):
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=checkout,
            env=environment | {"POSTING_DATABASE_URL": empty_url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return python


def test_a_field_added_by_the_recipe_is_in_the_api_its_document_and_the_pages(checkout, python):
    for path, text in steps("Add a field").items():
        for change in code_blocks(text, "diff"):
            apply(change, checkout / path)
        for commands in code_blocks(text, "console"):
            for command in commands.splitlines():
                subprocess.run(command.removeprefix("$ "), shell=True, cwd=checkout, check=True)
    migrate(checkout, python)
    shown = json.loads(python("-c", SCRIPT))
    document = shown.pop("document")
    assert shown == {
        "created": "A story",
        "read": "A story",
        "listed": ["A story", None],
        "edited": "B",
        "absent": None,
        "too long": 422,
        "page": True,
        "page without it": False,
        "form": True,
    }
    request = document["paths"]["/posts"]["post"]["requestBody"]
    response = document["paths"]["/posts/{id}"]["get"]["responses"]["200"]
    for message in (request, response):
        schema = message["content"]["application/json"]["schema"]
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        assert schema["properties"]["subtitle"]["examples"] == ["A story"]
    make(checkout, python, "lint")
    python("-m", "tests.helpers.archives")
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *TESTS)


def apply(change, file):
    """Apply a block in the form of a diff, whose context occurs once in the file."""
    lines = [line or " " for line in change.splitlines()]
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines if line[0] in kinds) for kinds in (" -", " +")
    )
    text = file.read_text()
    assert text.count(before) == 1, f"{file}\n{before}"
    file.write_text(text.replace(before, after))


def migrate(checkout, python):
    """Run the commands of the recipe for a migration, and edit the file that Alembic writes."""
    [(path, text)] = [
        (path, text) for path, text in steps("Add a migration").items() if "```" in text
    ]
    folder = (checkout / path).parent
    before = set(folder.glob("*.py"))
    number = f"{1 + max(int(file.name[:4]) for file in before if file.name[:4].isdigit()):04}"
    [commands] = code_blocks(text, "console")
    for command in commands.replace("NUMBER", number).splitlines():
        if command == "$ make format":
            make(checkout, python, "format")
        else:
            arguments = shlex.split(command.removeprefix("$ .venv/bin/flask "))
            python("-m", "flask", "--app", "posting", *arguments)
    make(checkout, python, "lint")  # what Alembic has written, before it is edited
    [file] = set(folder.glob("*.py")) - before
    head, _, generated = file.read_text().partition("def upgrade")
    assert 'op.add_column("posts", sa.Column("subtitle"' in generated
    [code] = code_blocks(text, "python")
    file.write_text(head + code)
    python("-m", "flask", "--app", "posting", "db", "upgrade")


def make(checkout, python, target):
    """Run the commands of a target of the Makefile, with the tools of this Python."""
    [recipe] = re.findall(
        rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    for command in recipe.splitlines():
        python("-m", *shlex.split(command.removeprefix("\t@$(BIN)/")))
