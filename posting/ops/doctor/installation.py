"""Checks of what is outside of the database: settings, files, nginx and backups."""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from flask import current_app

from posting.config import ABOUT, CUSTOM_CSS, everyone_may_read, max_form_bytes
from posting.db.engine import sqlite_file
from posting.db.types import now
from posting.ops.backup_folder import DATABASE, DUMP
from posting.ops.doctor.findings import Finding, Findings, failure, ok, warning
from posting.ops.files import KEPT, KEPT_TIME
from posting.plurals import count
from posting.web.hosts import LOOPBACK

MIN_HASH_COST = 2**14 * 8 * 5  # the lowest N * r * p on OWASP's password storage cheat sheet
SET_URL = "Set POSTING_PUBLIC_URL to the URL that browsers use, such as https://example.org"

NGINX = Path("/etc/nginx")
SITES = ("sites-enabled/*", "conf.d/*.conf", "nginx.conf")
NGINX_COMMENT = re.compile(r"#.*")
INTERNAL = re.compile(r"\{\s*internal;[^{}]*")  # locations for nginx's own error pages
SERVER = re.compile(r"\bserver\s*\{")
SOCKET_UPSTREAM = re.compile(r"\bupstream\s+(\S+)\s*\{[^{}]*/posting\.sock\b")
BODY_SIZE = re.compile(r"\bclient_max_body_size\s+(\d+)([kmg]?)\s*;", re.IGNORECASE)
CACHES_ALL = re.compile(r"\bproxy_ignore_headers\s[^;]*\bCache-Control\b")
NOT_CACHED = re.compile(r"\bproxy_no_cache\s([^;]*);")
ASKS = re.compile(r"\bauth_request\s")
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}

BACKUPS = Path("/var/backups/posting")  # as in deploy/posting-backup.service
MAX_BACKUP_AGE = timedelta(days=2)
MAKE_BACKUPS = (
    "Back up every night: docs/operating.md shows how. If your backups are in another place, "
    "ignore the warning."
)
CHECK_BACKUP = (
    "Check the nightly backup, with systemd for example: "
    "systemctl status posting-backup.timer posting-backup.service"
)


def check_settings() -> Findings:
    """Check the settings that protect accounts."""
    config = current_app.config
    shortest = config["PASSWORD_MIN"]
    advice = "" if shortest >= 15 else "; 15 are recommended"
    yield ok(f"Passwords need at least {shortest} characters{advice}")
    scrypt = config["PASSWORD_HASH"]
    n, r, p = map(int, scrypt.split(":")[1:])
    if n * r * p >= MIN_HASH_COST:
        yield ok(f"Passwords are hashed with {scrypt}")
    else:
        yield failure(
            f"Passwords are hashed with {scrypt}, which makes guessing cheap",
            "Remove POSTING_PASSWORD_HASH to use scrypt:32768:8:3; sign-ins renew the hashes.",
        )

    if not config["RATE_LIMITS"]:
        yield warning("Password guesses are not limited", "Remove POSTING_RATE_LIMITS.")
    elif config["LIMIT_SIGNIN"] is None:
        yield warning("Password guesses are not limited", "Remove POSTING_LIMIT_SIGNIN.")
    else:
        yield ok("Password guesses are limited")

    url, hops = config["PUBLIC_URL"] or "", config["PROXY_HOPS"]
    if not url:
        message = "There is no public URL: any Host is accepted, and cookies are not Secure"
        yield warning(message, SET_URL)
    elif url.startswith("http:") and urlsplit(url).hostname not in LOOPBACK:
        yield warning(
            f"Passwords and cookies sent to {url} can be read on the network",
            "Serve it with HTTPS, and set POSTING_PUBLIC_URL to that URL.",
        )
    else:
        yield ok(f"The public URL is {url}")

    if url.startswith("https:") and not hops:
        yield warning(
            "No proxy is trusted: behind one, all clients share its address and its rate limits",
            "Set POSTING_PROXY_HOPS=1, and X-Forwarded-For and X-Forwarded-Proto in the proxy.",
        )
    elif hops and not url:
        yield warning(f"Trusted proxies: {hops}, with any Host that they forward", SET_URL)
    else:
        yield ok(f"Trusted proxies: {hops}")


def check_own_files() -> Findings:
    """Check that the service can read the files that the operator has put beside the database."""
    for name in (ABOUT, CUSTOM_CSS):
        file = Path(current_app.instance_path) / name
        if file.exists() and not os.access(file, os.R_OK):
            yield failure(
                f"{file} cannot be read by this user",
                f"Run this as the service's user. If it is user {os.geteuid()}, run: "
                f"chown {os.geteuid()} {file}",
            )


def check_uploads() -> Findings:
    """Check what uploads need, and nginx if it is the proxy: what it accepts and caches."""
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
            yield _check_privacy(file, server)


def _check_privacy(file: Path, server: str) -> Finding:
    """Check that nginx does not ignore which responses are private, as its file once did."""
    exceptions = NOT_CACHED.findall(server)
    respects = exceptions and all("$posting_private" in names for names in exceptions)
    is_open = everyone_may_read(current_app.config)
    fix = f"Install the new deploy/nginx.conf as {file} and reload nginx."
    if CACHES_ALL.search(server) and not (respects or is_open):
        return failure(
            "nginx caches images that only members may read, and sends them to everyone",
            f"{fix} Then run: rm -rf /var/cache/posting-*/*",
        )
    if CACHES_ALL.search(server) and not ASKS.search(server):
        return warning(
            "nginx sends images from its cache for an hour after only members may read", fix
        )
    return ok("nginx caches nothing that only members may read")


def _parse(file: Path) -> tuple[str, list[str]]:
    """Return the text of a file outside of its server blocks, and the blocks."""
    try:
        text = INTERNAL.sub("", NGINX_COMMENT.sub("", file.read_text(errors="replace")))
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


def check_backups() -> Findings:
    """Check the nightly backups, and what a restore has left."""
    yield _check_age_of_backup()
    file = sqlite_file()
    folders = {Path(current_app.instance_path), *([file.parent] if file else [])}
    for kept in sorted(path for folder in folders for path in folder.glob(f"*{KEPT}*")):
        try:
            time = datetime.strptime(kept.name.rpartition(KEPT)[2], KEPT_TIME).replace(tzinfo=UTC)
        except ValueError:
            continue  # a file beside another one, such as its -wal
        age = count((now() - time).days, "day")
        yield warning(
            f"{kept} is what `flask restore` replaced {age} ago",
            f"When you no longer need it, run: rm {kept}*",
        )


def _check_age_of_backup() -> Finding:
    """Check that there is a backup, of whichever database, and that it is new."""
    if not BACKUPS.is_dir():
        return warning(f"There are no backups: there is no folder {BACKUPS}", MAKE_BACKUPS)
    if not os.access(BACKUPS, os.R_OK | os.X_OK):
        return warning(f"{BACKUPS} cannot be read", "Run this as the service's user.")
    newest = find_newest_backup()
    since = newest or _modified(BACKUPS)
    message = f"There is no backup in {BACKUPS} yet"
    if newest:
        message = f"The newest backup in {BACKUPS} is from {newest:%Y-%m-%d %H:%M} UTC"
    return ok(message) if now() - since <= MAX_BACKUP_AGE else warning(message, CHECK_BACKUP)


def find_newest_backup() -> datetime | None:
    """Return when the newest backup was made, of whichever database, if one can be found."""
    backups = [*BACKUPS.glob(f"*/{DATABASE}"), *BACKUPS.glob(f"*/{DUMP}"), *BACKUPS.glob("*.db")]
    times = []
    for backup in backups:
        with suppress(OSError):  # the nightly backup may just replace it
            times.append(_modified(backup))
    return max(times, default=None)


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)
