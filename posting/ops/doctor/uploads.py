"""Checks of what uploads need, and of nginx where it is the proxy: what it accepts and caches."""

import re
import shutil
import tempfile
from pathlib import Path

from flask import current_app

from posting.config import everyone_may_read, max_form_bytes
from posting.ops.doctor.findings import Finding, Findings, failure, ok, warning

NGINX = Path("/etc/nginx")
SITES = ("sites-enabled/*", "conf.d/*.conf", "nginx.conf")
COMMENT = re.compile(r"#.*")
INTERNAL = re.compile(r"\{\s*internal;[^{}]*")  # locations for nginx's own error pages
SERVER = re.compile(r"\bserver\s*\{")
SOCKET_UPSTREAM = re.compile(r"\bupstream\s+(\S+)\s*\{[^{}]*/posting\.sock\b")
BODY_SIZE = re.compile(r"\bclient_max_body_size\s+(\d+)([kmg]?)\s*;", re.IGNORECASE)
CACHES_ALL = re.compile(r"\bproxy_ignore_headers\s[^;]*\bCache-Control\b")
EXCEPT = re.compile(r"\bproxy_no_cache\s([^;]*);")
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}


def check() -> Findings:
    folder = tempfile.gettempdir()  # large forms are buffered there
    if shutil.disk_usage(folder).free >= 100 * 2**20:
        yield ok(f"{folder} has space for uploads")
    else:
        yield warning(f"{folder} has little space for uploads", f"Free space in {folder}")

    # Compare `client_max_body_size`, by default 1m, of each server that passes requests to Posting.
    needed = max_form_bytes(current_app.config)
    main, _ = _parse(NGINX / "nginx.conf")
    for file in [file for pattern in SITES for file in NGINX.glob(pattern)]:
        shared, servers = _parse(file)
        upstreams = "|".join(["posting", *map(re.escape, SOCKET_UPSTREAM.findall(shared))])
        for server in servers:
            if not re.search(rf"\bproxy_pass\s+\S*({upstreams})\b", server):
                continue
            found = map(BODY_SIZE.findall, (server, shared, main, "client_max_body_size 1m;"))
            sizes = [int(size) * UNITS[unit.lower()] for size, unit in next(filter(None, found))]
            limit = min(filter(None, sizes), default=0)  # 0 means no limit
            if not limit or limit >= needed:
                yield ok(f"nginx accepts forms of {needed:,} bytes")
            else:
                yield warning(
                    f"nginx rejects bodies over {limit:,} bytes, but forms may have {needed:,}",
                    f"Set client_max_body_size {-(-needed // 2**20)}m; in {file} and reload nginx",
                )
            if not everyone_may_read(current_app.config):
                yield _check_privacy(file, server)


def _check_privacy(file: Path, server: str) -> Finding:
    """Check that nginx does not ignore which responses are private, as its file once did."""
    exceptions = EXCEPT.findall(server)
    respects = exceptions and all("$posting_private" in names for names in exceptions)
    if CACHES_ALL.search(server) and not respects:
        return failure(
            "nginx caches images that only members may read, and sends them to everyone",
            f"Install the new deploy/nginx.conf as {file} and reload nginx. "
            "Then run: rm -rf /var/cache/posting-*/*",
        )
    return ok("nginx caches nothing that only members may read")


def _parse(file: Path) -> tuple[str, list[str]]:
    """Return the text of a file outside of its server blocks, and the blocks."""
    try:
        text = INTERNAL.sub("", COMMENT.sub("", file.read_text(errors="replace")))
    except OSError:  # the service's user may not read it
        return "", []
    shared, servers = "", []
    while match := SERVER.search(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        shared += text[: match.start()]
        servers.append(text[match.end() : end])
        text = text[end:]
    return shared + text, servers
