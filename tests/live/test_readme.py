"""The commands of the README and of the tour: each prints what is shown below it."""

import os
import re
import shutil
import subprocess

import pytest

from tests.live.conftest import ROOT

CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
# Differs from run to run. Everything else must be the same.
VARYING = re.compile(
    r'(?P<id>(?<=")[A-Za-z0-9_-]{21}(?=")|(?<=/)[A-Za-z0-9_-]{21}(?![A-Za-z0-9_-]))'
    r'|(?P<digest>(?<="1-)[0-9a-f]{16}(?="))'
    r"|(?P<timestamp>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
    r'|(?P<request>(?<="request_id":")[^"]+)'
    r'|(?P<size>(?<="size":)\d+)'
)


def commands_of(document):
    """Yield each command of a document with the output that is shown below it."""
    for block in CONSOLE.findall((ROOT / document).read_text()):
        for part in block.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.parametrize(("document", "least"), [("README.md", 4), ("docs/tour.md", 15)])
def test_each_command_prints_what_is_shown(serve, tmp_path, document, least):
    if not shutil.which("curl") and "CI" not in os.environ:
        pytest.skip("the commands need curl")
    shown_url, url = "http://127.0.0.1:8000", serve().url
    actual_values: dict[str, str] = {}
    commands = list(commands_of(document))
    assert len(commands) >= least
    for command, shown in commands:
        script = command.replace(shown_url, url)
        for shown_value, actual_value in actual_values.items():
            script = script.replace(shown_value, actual_value)
        output = subprocess.run(
            script, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.replace(url, shown_url)
        assert VARYING.sub("…", output) == VARYING.sub("…", shown), command
        for match, actual in zip(VARYING.finditer(shown), VARYING.finditer(output), strict=True):
            if match["id"] or match["digest"]:
                assert actual_values.setdefault(match[0], actual[0]) == actual[0], command
