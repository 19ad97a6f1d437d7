"""The tour in the README: each command prints what is shown below it."""

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


def tour():
    """Yield each command of the tour with the output that is shown below it."""
    for block in CONSOLE.findall((ROOT / "README.md").read_text()):
        for part in block.split("$ ")[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def test_the_tour_prints_what_it_shows(serve, tmp_path):
    if not shutil.which("curl") and "CI" not in os.environ:
        pytest.skip("the tour needs curl")
    shown_url, url = "http://127.0.0.1:8000", serve().url
    actual_values: dict[str, str] = {}
    commands = list(tour())
    assert len(commands) > 9
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
