"""A complete site: nginx in front of gunicorn, both with the shipped configuration."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests

ROOT = Path(__file__).parent.parent.parent
CONFIG = Path("deploy/gunicorn.conf.py")
HEAPS = {"MALLOC_ARENA_MAX": "2"}  # as deploy/serve.py sets it
# Pass on a socket as systemd does: as file descriptor 3, for this process id.
ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, sys.argv[2:])
"""
WRAPPER = """
user {user};
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    include /etc/nginx/mime.types;
    log_format test '$msec $request_time $status $upstream_status $upstream_cache_status $request';
    access_log {folder}/access.log test;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


def require_programs(*programs: str) -> None:
    """Skip the test if a program is missing, except in CI."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing and "CI" not in os.environ:
        pytest.skip(f"needs {', '.join(missing)}")


def gunicorn(config: Path = CONFIG) -> list[str]:
    """Return the command that starts gunicorn."""
    return [sys.executable, "-m", "gunicorn", "-c", str(config)]


class Gunicorn:
    """A gunicorn that can be restarted; its socket stays open, as with systemd."""

    def __init__(
        self, folder: Path, listener: socket.socket, app: str = "wsgi:app", **environment: str
    ) -> None:
        self.app = app
        self.log = folder / f"gunicorn-{listener.fileno()}.log"
        self.listener = listener
        self.environment = environment
        self.start()

    def start(self, code: Path = ROOT) -> None:
        descriptor = self.listener.fileno()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", ACTIVATE, str(descriptor), *gunicorn(), self.app],
                cwd=code,
                env=os.environ | HEAPS | self.environment,
                stderr=log,
                pass_fds=[descriptor],
                start_new_session=True,
            )

    def workers(self) -> list[int]:
        master = self.process.pid
        try:
            children = Path(f"/proc/{master}/task/{master}/children").read_text()
        except FileNotFoundError:
            return []
        return [int(child) for child in children.split()]

    def reload(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """Kill gunicorn and its workers, as a power failure would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)


class Nginx:
    """An nginx with the shipped site, for localhost and on free ports."""

    def __init__(self, folder: Path, ports: tuple[int, int], *upstreams: str) -> None:
        self.folder, (self.http, self.https) = folder, ports
        self.url = f"https://localhost:{self.https}"
        self.certificate = folder / "fullchain.pem"
        _make_certificate(folder)
        (folder / "site.conf").write_text(self._site(upstreams))
        user = "root" if os.getuid() == 0 else os.environ["USER"]
        (folder / "nginx.conf").write_text(WRAPPER.format(folder=folder, user=user))
        command = ["nginx", "-e", folder / "error.log", "-c", folder / "nginx.conf"]
        self.process = subprocess.Popen([*command, "-g", "daemon off;"])

    def _site(self, upstreams: tuple[str, ...]) -> str:
        """Return the shipped site with the domain, the upstreams, paths and ports replaced."""
        site = (ROOT / "deploy" / "nginx.conf").read_text()
        servers = "\n".join(f"server {upstream};" for upstream in upstreams)
        for pattern, replacement in (
            (r"server unix:/run/posting\.sock.*?;", servers),
            (r"example\.org", "localhost"),
            (r"/etc/posting/tls", str(self.folder)),
            (r"/var/cache", str(self.folder)),
            (r"/var/log/nginx", str(self.folder)),
            (r"(listen (\[::\]:)?)80\b", rf"\g<1>{self.http}"),
            (r"(listen (\[::\]:)?)443\b", rf"\g<1>{self.https}"),
        ):
            site, count = re.subn(pattern, replacement, site)
            assert count, pattern
        return site

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


class Site:
    """An nginx with its gunicorns; its clients trust the certificate."""

    def __init__(self, nginx: Nginx, gunicorns: list[Gunicorn]) -> None:
        self.nginx, self.gunicorns = nginx, gunicorns
        self.url = nginx.url

    def client(self) -> requests.Session:
        client = requests.Session()
        client.trust_env = False  # it may set other certificates
        client.verify = str(self.nginx.certificate)
        return client

    def get(self, path: str, **options: Any) -> requests.Response:
        with self.client() as client:
            return client.get(self.url + path, timeout=20, **options)

    def flask(self, *arguments: str) -> str:
        """Run a `flask` command with the settings of the site, and return its output."""
        return subprocess.run(
            [sys.executable, "-m", "flask", *arguments],
            cwd=ROOT,
            env=os.environ | self.gunicorns[0].environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def wait(self) -> None:
        """Wait until the site answers."""
        for _ in range(1000):
            try:
                if self.get("/readyz").ok:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.05)
        raise AssertionError(self.gunicorns[0].log.read_text())

    def stop(self) -> None:
        """Stop all processes, and check that no traceback was logged."""
        self.nginx.stop()
        for gunicorn in self.gunicorns:
            gunicorn.stop()
            gunicorn.listener.close()
            assert "Traceback" not in gunicorn.log.read_text(), gunicorn.log.read_text()


def open_listener(address: Path | tuple[str, int]) -> socket.socket:
    """Return a listening socket, at a path as in `posting.socket` or at a port."""
    is_path = isinstance(address, Path)
    listener = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(str(address) if is_path else address)
    listener.listen(2048)
    return listener


def _make_certificate(folder: Path) -> None:
    subprocess.run(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost "
        "-keyout privkey.pem -out fullchain.pem".split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
