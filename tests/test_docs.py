"""The documents name all that there is, and what they show is true."""

import ast
import json
import os
import re
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import click
import pytest

from posting import config
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OWN_COMMANDS = {"backup", "demo", "doctor", "export", "import", "moderation", "restore", "users"}


def table_rows(text):
    return {
        cells[1].strip("` "): [cell.strip() for cell in cells[2:-1]]
        for line in text.splitlines()
        if len(cells := re.split(r"(?<!\\)\|", line)) > 3
    }


@pytest.mark.parametrize("setting", config.SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_has_its_row(setting):
    default, meaning = table_rows(README)[config.PREFIX + setting.name]
    assert meaning
    if setting.default and setting.name not in {"DATABASE_URL"}:
        assert default == f"`{setting.default}`"


def test_every_setting_of_the_server_has_its_row():
    configuration = (ROOT / "deploy" / "gunicorn.conf.py").read_text()
    names = re.findall(r'(?:whole_number|environ.get)\("([A-Z_]+)"', configuration)
    assert {"BIND", "PORT", "WEB_CONCURRENCY", "MAX_REQUESTS"} <= set(names)
    assert set(names) - {"POSTING_METRICS"} <= table_rows(README).keys()


def test_no_setting_is_made_up():
    named = set(re.findall(r"POSTING_([A-Z_]+[A-Z])", " ".join(map(Path.read_text, DOCUMENTS))))
    assert named == {setting.name for setting in config.SETTINGS}


def test_every_endpoint_has_its_row(app):
    endpoints = {
        f"{method} {re.sub('<[^<>]*:id>', '{id}', rule.rule)}"
        for rule in app.url_map.iter_rules()
        if "filename" not in rule.arguments
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    rows = {row for row in table_rows(README) if re.match("[A-Z]+ /", row)}
    assert rows == endpoints
    interface = (ROOT / "docs" / "interface.md").read_text()
    for endpoint in endpoints:
        assert f"`{endpoint}`" in interface


def test_every_command_has_its_row(app):
    def names(command, prefix):
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                yield from names(child, f"{prefix} {name}")
        else:
            yield prefix

    rows = " ".join(table_rows(README))
    for name in OWN_COMMANDS:
        for command in names(app.cli.commands[name], f"flask {name}"):
            assert command in rows


def test_every_make_target_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    [phony] = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    documented = re.findall(r"^([a-z-]+):.* ## ", makefile, re.MULTILINE)
    assert sorted(documented) == sorted(phony.split())


def test_every_dependency_has_its_reason():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = setup["options"]["install_requires"] + "".join(setup["options.extras_require"].values())
    design = (ROOT / "docs" / "design.md").read_text().lower()
    for name in re.findall(r"^[a-z0-9-]+", lines, re.MULTILINE):
        assert f"`{name}`" in design, name


def test_every_dependency_is_locked():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    locked = (ROOT / "requirements.txt").read_text()
    for name in re.findall(r"^[a-z0-9-]+", setup["options"]["install_requires"], re.MULTILINE):
        assert f"{name}==" in locked


def test_every_promise_names_a_test_that_there_is():
    promises = table_rows((ROOT / "docs" / "security.md").read_text())
    shown = [cells[1].strip("`") for numbers, cells in promises.items() if numbers[0].isdigit()]
    assert len(shown) > 30
    for name in shown:
        file, *path = name.split("::")
        scope: Any = ast.parse((ROOT / "tests" / file).read_text())
        for step in path:
            [scope] = [node for node in scope.body if getattr(node, "name", None) == step]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text()):
        assert (document.parent / link).exists(), link


def test_the_image_is_made_as_the_docs_say():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    operating = (ROOT / "docs" / "operating.md").read_text()
    for step in (
        "make python3-venv",
        "useradd --system --home-dir /opt/posting --shell /usr/sbin/nologin posting",
        "install -d -o posting -g posting -m 0700 /var/lib/posting",
        "POSTING_INSTANCE_PATH=/var/lib/posting",
    ):
        assert step in dockerfile
        assert step in operating
    assert "make install" in dockerfile
    assert "make -C /opt/posting install" in operating
    unit = (ROOT / "deploy" / "posting.service").read_text()
    [command] = re.findall(r"^CMD (\[.*\])$", dockerfile, re.MULTILINE)
    command = " ".join(json.loads(command))
    assert f"ExecStart=/opt/posting/{command}\n" in unit
    assert "EnvironmentFile=" not in unit  # the server reads .env as `flask` does
    assert f"exec $(BIN)/{command.removeprefix('.venv/bin/')}\n" in (ROOT / "Makefile").read_text()


def test_the_fixtures_for_other_peoples_tests_work_as_written(tmp_path):
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "test_example.py").write_text(example)
    environment = {name: value for name, value in os.environ.items() if "POSTING" not in name}
    result = subprocess.run(
        [*f"{sys.executable} -W error -m pytest -q -p posting.testing".split(), tmp_path],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in result.stdout, result.stdout + result.stderr


def test_the_version_is_in_the_changelog():
    assert f"\n## {config.VERSION}" in (ROOT / "CHANGELOG.md").read_text()
