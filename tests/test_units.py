"""The systemd units; tests/live/test_operating.py runs them."""

import subprocess

import pytest

from tests.helpers import ROOT
from tests.live.sites import require_programs

UNITS = sorted(path.name for path in (ROOT / "deploy").glob("posting*.*"))


def directives(unit):
    """Return the directives of a unit, each with its values."""
    found = {}
    for line in (ROOT / "deploy" / unit).read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_backup_runs_in_the_sandbox_of_the_service():
    service, backup = directives("posting.service"), directives("posting-backup.service")
    names = [*service]
    sandbox = names[names.index("NoNewPrivileges") : names.index("WantedBy")]
    assert len(sandbox) > 20
    stricter = {"SystemCallFilter": ["@system-service", "~@privileged @resources"]}
    for name in sandbox:
        assert backup[name] == stricter.get(name, service[name]), name
    for name in ("User", "Group", "WorkingDirectory", "UMask"):
        assert backup[name] == service[name]
    assert backup["ReadWritePaths"] == ["/var/lib/posting /var/backups/posting"]


def test_a_failed_backup_is_announced():
    [unit] = directives("posting-backup.service")["OnFailure"]
    announcement = directives(unit)
    assert announcement["SyslogLevel"] == ["err"]
    assert "journalctl --unit posting-backup" in announcement["ExecStart"][0]
    guide = (ROOT / "docs" / "operating.md").read_text()
    assert unit.removesuffix(".service") in guide
    assert "deploy/posting*.service" in guide  # it is installed with the others


def verify(unit):
    """Return what systemd says about a unit."""
    require_programs("systemd-analyze")
    command = ["systemd-analyze", "verify", "--man=no", unit]
    return subprocess.run(command, check=False, capture_output=True, text=True).stderr


@pytest.mark.parametrize("unit", UNITS)
def test_each_directive_has_the_spelling_that_systemd_knows(unit, tmp_path):
    found = verify(ROOT / "deploy" / unit)
    assert "Unknown key" not in found
    assert "Failed to parse" not in found
    text = (ROOT / "deploy" / unit).read_text()
    (tmp_path / unit).write_text(text.replace("[Unit]\n", "[Unit]\nMisspelt=yes\n"))
    found = verify(tmp_path / unit)
    assert "Unknown key" in found
    assert "Misspelt" in found
