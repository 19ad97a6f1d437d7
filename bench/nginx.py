"""nginx with the shipped configuration in front of Posting, and with static files."""

import getpass
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import servers
from bench.harness import SETTINGS, get_body

# As in Debian's nginx.conf, except for a single worker.
WRAPPER = """
user {user};
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    types_hash_max_size 2048;
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
    include {folder}/static.conf;
}}
"""
# The same settings for connections and gzip as in the shipped site.
STATIC = """
server {{
    listen {port} ssl http2;
    listen [::]:{port} ssl http2;
    server_name localhost;

    ssl_certificate {folder}/fullchain.pem;
    ssl_certificate_key {folder}/privkey.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_session_cache shared:posting_tls:10m;
    ssl_session_timeout 1d;
    ssl_session_tickets off;
    keepalive_timeout 60s;

    gzip on;
    gzip_vary on;
    gzip_proxied any;
    gzip_types application/json application/problem+json;

    root {folder}/static;
    default_type application/json;
}}
"""


@dataclass
class Site:
    """The URLs of Posting and of static files on one nginx."""

    posting: str
    static: str


@contextmanager
def serve(folder: Path, database: str, **settings: str) -> Iterator[Site]:
    """Serve Posting on a database, and its list of posts as a static file.

    `settings` are added to those of the benchmarks.
    """
    static = folder / "static"
    static.mkdir(parents=True)
    ports = [servers.free_port() for _ in range(3)]
    posting, static_files = (f"https://localhost:{port}" for port in ports[1:])
    public = {"POSTING_PUBLIC_URL": posting, "POSTING_PROXY_HOPS": "1"}
    environment = SETTINGS | settings | {"POSTING_DATABASE_URL": database} | public
    with servers.gunicorn("wsgi:app", "/readyz", **environment) as (upstream, _):
        _configure(folder, upstream.removeprefix("http://"), ports)
        command = ["nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        with servers.serve([*command, "-g", "daemon off;"], f"{posting}/readyz"):
            (static / "posts").write_bytes(get_body(f"{posting}/posts"))
            yield Site(posting, static_files)


def _configure(folder: Path, upstream: str, ports: list[int]) -> None:
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -keyout privkey.pem -out fullchain.pem".split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    (folder / "nginx.conf").write_text(WRAPPER.format(folder=folder, user=getpass.getuser()))
    (folder / "site.conf").write_text(_shipped_site(folder, upstream, *ports[:2]))
    (folder / "static.conf").write_text(STATIC.format(folder=folder, port=ports[2]))


def _shipped_site(folder: Path, upstream: str, http: int, https: int) -> str:
    """Return the shipped site with the domain, the upstream, paths and ports replaced."""
    site = (servers.ROOT / "deploy" / "nginx.conf").read_text()
    for pattern, replacement in (
        (r"server unix:/run/posting\.sock", f"server {upstream}"),
        (r"example\.org", "localhost"),
        (r"/etc/posting/tls", str(folder)),
        (r"/var/cache", str(folder)),
        (r"/var/log/nginx", str(folder)),
        (r"(listen (\[::\]:)?)80\b", rf"\g<1>{http}"),
        (r"(listen (\[::\]:)?)443\b", rf"\g<1>{https}"),
    ):
        site, count = re.subn(pattern, replacement, site)
        assert count, pattern
    return site
