"""`make bench`: measure Posting, its upper bounds and PocketBase, and write a table.

The contenders of a row take turns in each round, so that other load on the machine affects all of
them. Compare the ratios within a row, not the numbers of different machines.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench import finding, footprint, report, rows, signing_in, writing
from bench.harness import POSTS, Bench

RESULTS = Path(__file__).parent / "results.md"
MEASUREMENTS = (
    rows.reading,
    rows.reading_by_members,
    rows.pages,
    rows.behind_nginx,
    rows.reading_while_writing,
    writing.on_sqlite,
    writing.slowest,
    writing.on_postgres,
    signing_in.signing_in,
    rows.scaling,
    finding.finding,
    finding.finding_comments,
    finding.following,
    finding.feeds,
    finding.tokens,
    footprint.memory,
    footprint.starting,
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
        try:
            for measure in MEASUREMENTS:
                for row in measure(bench):
                    print(f"{row.name}: done", file=sys.stderr)
                    results.append(row)
        finally:  # even if one of them has failed
            report.write(RESULTS, "Results", "make bench", results)


if __name__ == "__main__":
    main()
