"""Build, change and import archives.

Run as a program, it writes an archive of the current schema from that of the last one.
"""

import gzip
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa

from posting import create_app
from posting.db.base import archived_tables, db
from posting.db.migrations.revisions import head_revision
from posting.db.transactions import transaction
from posting.indexes import INDEXES
from tests.helpers import ROOT

ARCHIVES = ROOT / "tests" / "ops" / "archives"  # one of each schema, not compressed


def example_archive():
    """Return the lines of the archive in docs/archive.md, in the current schema."""
    [example] = re.findall(
        r"```json\n(.*?)```", (ROOT / "docs" / "archive.md").read_text(), re.DOTALL
    )
    header, *rows = [json.loads(line) for line in example.splitlines()]
    header["schema"] = head_revision()
    for line in rows:
        columns = db.metadata.tables[line["table"]].columns.keys()
        line["row"] = {name: line["row"].get(name) for name in columns}
    return [header, *rows]


def run(app, *arguments):
    """Run a `flask` command; return its exit code and the last line of its output."""
    result = app.test_cli_runner().invoke(args=[str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output.splitlines()[-1]


def export(app, path):
    code, output = run(app, "export", path)
    assert code == 0, output
    return path.read_bytes()


def import_(app, path):
    code, output = run(app, "import", path)
    assert code == 0, output


def delete_all_rows(app):
    with app.app_context(), transaction() as connection:
        for table in reversed(db.metadata.sorted_tables):
            connection.execute(sa.delete(table))
        for index in INDEXES:
            index.clear(connection)


def count_rows(app):
    """Return the number of rows per table, of the tables in an archive."""
    with app.app_context(), db.engine.connect() as connection:
        count = sa.func.count()
        return {
            table.name: connection.scalar(sa.select(count).select_from(table))
            for table in archived_tables()
        }


def compress(*lines):
    """Return an archive of lines: either bytes or values to encode as JSON."""
    parts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return gzip.compress(b"".join(part + b"\n" for part in parts))


def write_archive(path, *lines):
    path.write_bytes(compress(*lines))
    return path


def read_archive(path):
    """Return the lines of an archive without their checksums."""
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    for line in lines:
        line.pop("checksum", None)
    return lines


# Lines of the example. Lines 2 and 3 are users, 6 and 7 a comment and a reply to it.
USER, KEY, POST, COMMENT, REPLY = 2, 4, 5, 6, 7
FILE, IMAGE, FILE_DATA, DATA, THUMBNAIL = 8, 9, 10, 11, 12

# Each of the following returns a function that changes the lines of an archive.


def set_values(number, **values):
    def change(lines):
        lines[number - 1]["row"] |= values

    return change


def set_header(**values):
    def change(lines):
        lines[0] |= values

    return change


def set_counts(**counts):
    def change(lines):
        lines[0]["rows"] |= counts

    return change


def set_line(number, content):
    def change(lines):
        lines[number - 1] = content

    return change


def delete_line(number):
    def change(lines):
        del lines[number - 1]

    return change


def delete_column(number, column):
    def change(lines):
        del lines[number - 1]["row"][column]

    return change


def swap_lines(one, another):
    def change(lines):
        lines[one - 1], lines[another - 1] = lines[another - 1], lines[one - 1]

    return change


def append_line(content):
    return lambda lines: lines.append(content)


def write_current_archive():
    """Write the archive of the current schema to ARCHIVES, with the rows of the latest one."""
    latest = max(ARCHIVES.glob("*.jsonl"))
    with TemporaryDirectory() as folder:
        app = create_app({"DATABASE_URL": f"sqlite:///{folder}/new.db", "INSTANCE_PATH": folder})
        source, target = Path(folder, "source.gz"), Path(folder, "target.gz")
        source.write_bytes(gzip.compress(latest.read_bytes()))
        import_(app, source)
        written = ARCHIVES / f"{head_revision()}.jsonl"
        written.write_bytes(gzip.decompress(export(app, target)))
    print(f"{written.relative_to(ROOT)} has the rows of {latest.name}.")


if __name__ == "__main__":
    write_current_archive()
