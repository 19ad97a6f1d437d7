"""Check of the nginx in front: it must not refuse bodies that the service takes."""

import re
from pathlib import Path

from flask import current_app

from posting.config import max_form_bytes
from posting.ops.doctor.findings import Findings, ok, warning

FOLDER = Path("/etc/nginx")
SITES = ("sites-enabled/*", "conf.d/*.conf", "nginx.conf")
COMMENT = re.compile(r"#.*")
INTERNAL = re.compile(r"\{\s*internal;[^{}]*")  # a location of nginx's own pages
IS_POSTING = re.compile(r"/posting\.sock\b|\bproxy_pass\s+\S*posting\b")
BODY_SIZE = re.compile(r"\bclient_max_body_size\s+(\d+)([kmg]?)\s*;", re.IGNORECASE)
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
DEFAULT = 2**20  # where nothing is said


def check_body_size() -> Findings:
    wanted = max_form_bytes(current_app.config)
    for pattern in SITES:
        for file in FOLDER.glob(pattern):
            text = _read(file)
            if not IS_POSTING.search(text):
                continue
            sizes = _sizes(text) or _sizes(_read(FOLDER / "nginx.conf")) or [DEFAULT]
            least = min((size for size in sizes if size), default=0)  # 0 is no limit
            if not least or least >= wanted:
                yield ok(f"nginx takes forms of {wanted:,} bytes")
            else:
                yield warning(
                    f"nginx refuses bodies over {least:,} bytes, and forms may have {wanted:,}",
                    f"Write client_max_body_size {-(-wanted // 2**20)}m; into {file}, reload nginx",
                )


def _read(file: Path) -> str:
    """Return what a file says of requests, or nothing where the service's user may not read it."""
    try:
        return INTERNAL.sub("", COMMENT.sub("", file.read_text(errors="replace")))
    except OSError:
        return ""


def _sizes(text: str) -> list[int]:
    return [int(size) * UNITS[unit.lower()] for size, unit in BODY_SIZE.findall(text)]
