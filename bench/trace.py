"""Trace five requests through the package: `.venv/bin/python -m bench.trace`.

For each request, the table shows the files of posting/ that it enters, the calls of functions in
them, the switches between files, the SQL statements and the transactions. A switch is a call whose
nearest caller in posting/, with or without a library in between, is in another file. Each request
is sent twice and the second one is counted, so that caches are warm; the response cache is off.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import sqlalchemy as sa

import posting
from posting import create_app

PACKAGE = str(Path(posting.__file__).parent)
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
SETTINGS = {"TESTING": True, "RATE_LIMITS": "on", "RESPONSE_CACHE": "off"}
ACCOUNT = {"username": "ada", "password": "a long walk by the sea"}
POST = {"title": "A title", "content": "Some text."}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c636000000002000148afa4710000000049454e44ae426082"
)


@dataclass
class Trace:
    files: set[str] = field(default_factory=set)
    calls: int = 0
    switches: int = 0
    statements: int = 0
    transactions: int = 0


@contextmanager
def tracing() -> Iterator[Trace]:
    """Trace what the current thread does in the block."""
    trace = Trace()

    def on_event(frame: FrameType, event: str, _argument: object) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        is_module = file.startswith(PACKAGE) and file.endswith(".py")  # and no template
        if event != "call" or not is_module or name in COMPREHENSIONS:
            return
        caller = frame.f_back
        while caller and not caller.f_code.co_filename.startswith(PACKAGE):
            caller = caller.f_back
        trace.files.add(file)
        trace.calls += 1
        trace.switches += caller is None or caller.f_code.co_filename != file

    def on_statement(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("BEGIN"):
            trace.transactions += 1
        else:
            trace.statements += 1

    sa.event.listen(sa.Engine, "before_cursor_execute", on_statement)
    sys.setprofile(on_event)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        sa.event.remove(sa.Engine, "before_cursor_execute", on_statement)


def trace_requests(folder: str) -> Iterator[tuple[str, Trace]]:
    database = {"DATABASE_URL": f"sqlite:///{folder}/posting.db", "INSTANCE_PATH": folder}
    app = create_app(SETTINGS | database)
    ada, anonymous = app.test_client(), app.test_client()
    ada.post("/signup", json=ACCOUNT)
    ada.post("/signin", json=ACCOUNT)
    post = f"/posts/{ada.post('/posts', json=POST).get_json()['id']}"
    comments = iter(
        [ada.post(f"{post}/comments", json={"content": "A comment."}).get_json() for _ in range(2)]
    )
    requests = {
        "GET /posts": lambda: anonymous.get("/posts"),
        "POST /posts": lambda: ada.post("/posts", json=POST),
        "DELETE /comments/{id}": lambda: ada.delete(f"/comments/{next(comments)['id']}"),
        "POST /posts/{id}/images": lambda: ada.post(
            f"{post}/images", data={"file": (BytesIO(PNG), "pixel.png")}
        ),
        "POST /signin": lambda: app.test_client().post("/signin", json=ACCOUNT),
    }
    for name, send in requests.items():
        send()
        with tracing() as trace:
            response = send()
        assert response.status_code in {200, 201, 204}, response.text
        yield name, trace


def main() -> None:
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()):  # the access log
        traces = list(trace_requests(folder))
    print("| request | files | calls | switches | statements | transactions |")
    print("|---|---|---|---|---|---|")
    for name, trace in traces:
        counts = (trace.calls, trace.switches, trace.statements, trace.transactions)
        print(f"| {name} | {len(trace.files)} | {' | '.join(map(str, counts))} |")
    if "--files" in sys.argv:
        for name, trace in traces:
            files = sorted(file.removeprefix(f"{PACKAGE}/") for file in trace.files)
            print(f"{name}: {', '.join(files)}")


if __name__ == "__main__":
    main()
