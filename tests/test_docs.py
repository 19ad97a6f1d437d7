"""The documentation is complete, and what it shows is true."""

import ast
import json
import re
from configparser import ConfigParser
from typing import Any

import click
import pytest

from posting import config
from posting.web.hosts import url_template
from tests.helpers import ROOT

SETTINGS = (ROOT / "docs" / "settings.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
INTERFACE = (ROOT / "docs" / "interface.md").read_text()
DESIGN = (ROOT / "docs" / "design.md").read_text()
OPERATING = (ROOT / "docs" / "operating.md").read_text()
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]


def table_rows(text):
    return {
        cells[1].strip("` "): [cell.strip() for cell in cells[2:-1]]
        for line in text.splitlines()
        if len(cells := re.split(r"(?<!\\)\|", line)) > 3
    }


@pytest.mark.parametrize("setting", config.SETTINGS, ids=lambda setting: setting.name)
def test_each_setting_is_documented_with_its_default(setting):
    default, description = table_rows(SETTINGS)[config.PREFIX + setting.name]
    assert description
    expected = setting.default
    if isinstance(expected, bool):
        expected = "on" if expected else "off"
    if expected and setting.name not in {"DATABASE_URL"}:
        assert default == f"`{expected}`"


@pytest.mark.parametrize("setting", config.SERVER_SETTINGS, ids=lambda setting: setting.name)
def test_each_setting_of_the_server_is_documented(setting):
    default, _ = table_rows(SETTINGS)[setting.name]
    is_processors = setting.name == "WEB_CONCURRENCY"
    assert default == ("number of processors" if is_processors else f"`{setting.default}`")


def test_only_settings_that_exist_are_documented():
    documents = [path.read_text() for path in DOCUMENTS if path.name != "CHANGELOG.md"]
    named = set(re.findall(r"POSTING_([A-Z_]+[A-Z])", " ".join(documents)))
    assert named == {setting.name for setting in config.SETTINGS}


def test_exactly_the_existing_endpoints_are_documented(app):
    endpoints = {
        f"{method} {url_template(rule.rule)}"
        for rule in app.url_map.iter_rules()
        if "filename" not in rule.arguments
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert {row for row in table_rows(INTERFACE) if re.match("[A-Z]+ /", row)} == endpoints


def test_each_command_is_documented(app):
    def names(command, prefix):
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                yield from names(command.get_command(context, name), f"{prefix} {name}")
        elif command.callback.__module__.startswith("posting."):
            yield prefix

    commands = set(names(app.cli, "flask"))
    assert {"flask backup", "flask users promote"} <= commands
    rows = [row.split() for row in table_rows(COMMANDS)]
    for command in commands:
        assert any(row[: command.count(" ") + 1] == command.split() for row in rows), command


def test_each_make_target_has_a_help_text():
    makefile = (ROOT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    documented = re.findall(r"^([a-z-]+):.* ## ", makefile, re.MULTILINE)
    assert sorted(documented) == sorted(phony.split())


def test_each_dependency_has_a_reason():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    reasons = [f"`{row}`" for row in table_rows(DESIGN.partition("## Dependencies")[2])]
    lines = setup["options"]["install_requires"] + "".join(setup["options.extras_require"].values())
    for name in re.findall(r"^[a-z0-9-]+", lines, re.MULTILINE):
        assert any(f"`{name}`" in row for row in reasons), name


def test_each_dependency_is_locked():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    locked = (ROOT / "requirements.txt").read_text()
    for name in re.findall(r"^[a-z0-9-]+", setup["options"]["install_requires"], re.MULTILINE):
        assert f"{name}==" in locked


def test_each_security_property_names_a_test_that_exists():
    rows = re.findall(r"^\| \d.* \| `(.*)` \|$", (ROOT / "docs" / "security.md").read_text(), re.M)
    tests = [name for row in rows for name in row.split("`, `")]
    assert len(tests) > 50
    for name in tests:
        file, *path = name.split("::")
        scope: Any = ast.parse((ROOT / "tests" / file).read_text())
        for step in path:
            [scope] = [node for node in scope.body if getattr(node, "name", None) == step]


def test_the_design_describes_each_part_of_the_package():
    layers = re.search("## Features on a kit\n(.*?)\n## ", DESIGN, re.DOTALL)[1]
    described = re.findall("`([a-z]+)`", layers)
    parts = {path.stem for path in (ROOT / "posting").glob("*.py")} | {
        path.parent.name for path in (ROOT / "posting").glob("*/__init__.py")
    }
    assert set(described) == parts - {"__init__"}


def test_the_files_that_the_design_names_exist():
    names = re.findall(r"`([\w/]+/[\w.]*)`", DESIGN)
    assert len(names) > 5
    for name in names:
        assert (ROOT / name).exists() or (ROOT / "posting" / name).exists(), name


def test_the_messages_under_troubleshooting_exist():
    rows = OPERATING.partition("## Troubleshooting")[2]
    quoted = set(re.findall(r"^\| `([a-z ]+)` \|", rows, re.MULTILINE))
    assert len(quoted) > 2
    code = " ".join(path.read_text() for path in (ROOT / "posting").rglob("*.py"))
    for message in quoted - {"database disk image is malformed"}:  # SQLite's own
        assert message in code, message


def headings(document):
    """Return the anchors of a document, as GitHub makes them."""
    titles = re.findall("^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(document):
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", document.read_text()):
        target = document.parent / path if path else document
        assert target.exists(), path
        assert not anchor or anchor in headings(target), anchor


def test_the_container_image_follows_the_guide():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    for step in (
        "make python3-venv",
        "--home-dir /opt/posting --shell /usr/sbin/nologin posting",
        "install -d -o posting -g posting -m 0700 /var/lib/posting",
        "POSTING_INSTANCE_PATH=/var/lib/posting",
    ):
        assert step in dockerfile
        assert step in OPERATING
    assert "make install" in dockerfile
    assert "make -C /opt/posting install" in OPERATING
    unit = (ROOT / "deploy" / "posting.service").read_text()
    [command] = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
    command = " ".join(json.loads(command))
    assert f"ExecStart=/opt/posting/{command}\n" in unit
    assert "EnvironmentFile=" not in unit  # the server reads .env as `flask` does
    assert f"exec $(BIN)/{command.removeprefix('.venv/bin/')}\n" in (ROOT / "Makefile").read_text()


def test_the_users_of_the_containers_are_the_same_everywhere():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    [user] = re.findall(r"^USER (\d+)$", dockerfile, re.MULTILINE)
    [group] = re.findall(r"-g (\d+) -m 0750 /run/posting", dockerfile)
    assert f"useradd --uid {user} " in dockerfile
    assert f'user: "{user}:{group}"' in (ROOT / "deploy" / "compose.yaml").read_text()
    assert f"install -d -o {user} -g {user} -m 0700 /var/backups/posting" in OPERATING


def test_the_build_of_the_image_sees_only_what_it_copies():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile, re.MULTILINE)
    first, *allowed = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert first == "*"
    assert {f"!{path}" for line in copied for path in line.split()} == {
        line for line in allowed if line.startswith("!")
    }


def test_commands_work_in_shells_that_match_file_names():
    """zsh takes an unquoted `?` or `*` in a URL for a pattern, and fails."""
    for document in DOCUMENTS:
        blocks = re.findall(r"```(?:console|sh)\n(.*?)```", document.read_text(), re.DOTALL)
        commands = re.findall(r"^(?:\$ )?(curl .*)$", "".join(blocks), re.MULTILINE)
        for command in commands:
            unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
            assert not re.search(r"https?://\S*[?*&\[]", unquoted), command


def test_the_version_is_in_the_changelog():
    assert f"\n## {config.VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_guide_lets_the_service_read_the_code():
    """A umask stays in the operator's shell, and decides who may read what git and pip write."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", OPERATING, re.M | re.S)
    changing = [block for block in blocks if re.search(r"git (clone|pull|switch)", block)]
    assert len(changing) == 7
    for block in changing:
        assert re.search(r"^umask 022\n", block, re.M), block
    assert not any(re.search("^umask 0[^2]", block, re.M) for block in blocks)
