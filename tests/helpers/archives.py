"""What tests do with archives."""

import gzip
import json
import re
from pathlib import Path

import sqlalchemy as sa

from posting.db.engine import db

DOCUMENT = (Path(__file__).parent.parent.parent / "docs" / "archive.md").read_text()


def documented():
    """Return the archive of docs/archive.md, line by line."""
    [example] = re.findall(r"```json\n(.*?)```", DOCUMENT, re.DOTALL)
    return [json.loads(line) for line in example.splitlines()]


def run(app, *arguments):
    """Run a `flask` command; return its exit code and its last line."""
    result = app.test_cli_runner().invoke(args=[str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output.splitlines()[-1]


def export(app, path):
    code, said = run(app, "export", path)
    assert code == 0, said
    return path.read_bytes()


def import_(app, path):
    code, said = run(app, "import", path)
    assert code == 0, said


def clear(app):
    with app.app_context(), db.engine.begin() as connection:
        for table in reversed(db.metadata.sorted_tables):
            connection.execute(sa.delete(table))


def rows_of(app):
    """Return how many rows each table has."""
    with app.app_context(), db.engine.connect() as connection:
        count = sa.func.count()
        return {
            name: connection.scalar(sa.select(count).select_from(table))
            for name, table in db.metadata.tables.items()
        }


def packed(*lines):
    """Return an archive of these lines: bytes, or what is to be JSON."""
    parts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    return gzip.compress(b"".join(part + b"\n" for part in parts))


def pack(path, *lines):
    path.write_bytes(packed(*lines))
    return path


def unpack(path):
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).split(b"\n")[:-1]]


# The example of docs/archive.md has in line 2 and 3 users, 4 an idempotency key, 5 a post,
# 6 and 7 a comment and a reply, 8 an image, 9 its bytes.
USER, KEY, POST, COMMENT, REPLY, IMAGE, DATA = 2, 4, 5, 6, 7, 8, 9


def on(line, **values):
    """Change values of the row in a line."""

    def change(lines):
        lines[line - 1]["row"] |= values

    return change


def header(**values):
    def change(lines):
        lines[0] |= values

    return change


def counted(**counts):
    def change(lines):
        lines[0]["rows"] |= counts

    return change


def line(number, content):
    def change(lines):
        lines[number - 1] = content

    return change


def dropped(number, column=None):
    def change(lines):
        if column:
            del lines[number - 1]["row"][column]
        else:
            del lines[number - 1]

    return change


def swapped(one, another):
    def change(lines):
        lines[one - 1], lines[another - 1] = lines[another - 1], lines[one - 1]

    return change


def added(content):
    return lambda lines: lines.append(content)
