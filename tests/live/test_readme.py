"""README's tour: its commands run as written and answer as written."""

import os
import re
import shutil
import subprocess

import pytest

from tests.live.conftest import ROOT

CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
# What no two runs or machines share; everything else must be the same to the letter.
VARYING = re.compile(
    r'(?P<id>(?<=")[A-Za-z0-9_-]{21}(?=")|(?<=/)[A-Za-z0-9_-]{21}(?![A-Za-z0-9_-]))'
    r"|(?P<moment>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
    r'|(?P<request>(?<="request_id":")[^"]+)'
    r'|(?P<size>(?<="size":)\d+)'
)


def tour():
    """Yield each command of the tour with the answer that is shown below it."""
    for block in CONSOLE.findall((ROOT / "README.md").read_text()):
        for part in block.split("$ ")[1:]:
            command, _, answer = part.partition("\n")
            yield command, answer


def test_the_tour_is_true(serve, tmp_path):
    if not shutil.which("curl") and "CI" not in os.environ:
        pytest.skip("the tour needs curl")
    written_url, url = "http://127.0.0.1:8000", serve().url
    actual_of: dict[str, str] = {}
    commands = list(tour())
    assert len(commands) > 9
    for command, shown in commands:
        script = command.replace(written_url, url)
        for written, actual in actual_of.items():
            script = script.replace(written, actual)
        answer = subprocess.run(
            script,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.replace(url, written_url)
        assert VARYING.sub("…", answer) == VARYING.sub("…", shown), command
        for written, actual in zip(VARYING.finditer(shown), VARYING.finditer(answer), strict=True):
            if written["id"]:
                assert actual_of.setdefault(written[0], actual[0]) == actual[0], command
