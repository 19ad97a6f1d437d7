"""A container on this machine: systemd on a copy of a root file system, without a network.

The copy is an overlay whose changes are in memory and end with the container. Any installation of
Posting, the sites of nginx and the clusters of Postgres are removed from the copy; a running
cluster would change below the overlay. The container has a group of processes of its own below that
of the test, and its own settings of the network, so that Docker can run in it.
"""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.live.sites import ROOT

BOOT = """
set -e
mount -t tmpfs -o size=4g box {folder}
mkdir {folder}/upper {folder}/work {folder}/root
cd {folder}
mount -t overlay -o lowerdir={base},upperdir=upper,workdir=work overlay root
cd root
mount -t proc proc proc
{leftovers}
chroot . userdel --force posting || true
chroot . groupdel posting || true
rm -rf opt/posting etc/posting var/lib/posting var/backups/posting srv/posting var/cache/posting-* \
    etc/nginx/sites-available/posting etc/nginx/sites-enabled/* etc/nginx/conf.d/* \
    var/log/nginx/* var/log/journal/* etc/postgresql/* etc/letsencrypt/*/
mkdir -p var/lib/postgresql var/lib/docker
mount -t tmpfs tmpfs var/lib/postgresql
mount -t tmpfs -o size=6g tmpfs var/lib/docker
chroot . chown postgres: /var/lib/postgresql || true
find etc/systemd usr/local/lib/systemd -name 'posting*' -exec rm -rf {{}} + || true
echo 1 > proc/sys/net/ipv4/ip_forward
mkdir {folder}/net
mount --bind proc/sys/net {folder}/net
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount --move {folder}/net proc/sys/net
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir sys/fs/cgroup/{group}
echo 0 > sys/fs/cgroup/{group}/cgroup.procs
umount sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --rbind /dev dev
{mounts}
ip link set lo up
mkdir old
pivot_root . old
umount --lazy old
exec env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin unshare --cgroup sh -c \
    'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec /lib/systemd/systemd --unit=basic.target'
"""
CLEAN_UP = """
mount -t cgroup2 cgroup2 {folder}
until find {folder}/{group} -depth -type d -exec rmdir {{}} + 2> /dev/null; do sleep 0.1; done
"""
# pip installs from this folder, because there is no network.
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INDEX": "1",
    "PIP_FIND_LINKS": "/wheels",
}


class Box:
    """A booted container that runs commands as root. Each folder in `shared` is mounted at `/name`.

    `base` is the root file system that is copied. `leftovers` is a script that runs in the copy
    before an installation is removed from it.
    """

    def __init__(
        self, folder: Path, leftovers: str = "", base: Path = Path("/"), **shared: Path
    ) -> None:
        self.log = folder / "boot.log"
        self.paths = {"folder": folder / "box", "group": f"box-{secrets.token_hex(8)}"}
        self.paths["folder"].mkdir()
        mounts = "\n".join(
            f"mkdir -p {name} && mount --bind {path} {name}" for name, path in shared.items()
        )
        boot = BOOT.format(**self.paths, base=base, mounts=mounts, leftovers=leftovers)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
                    *("--net", "--uts", "--ipc", "--propagation=private", "sh", "-c", boot),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._wait()

    def run(self, script: str, *, check: bool = True) -> str:
        """Run a script and return its output. Raises AssertionError if it fails."""
        [init] = self._children(self.process.pid)
        done = subprocess.run(
            ["nsenter", f"--target={init}", "--all", "--wdns=/", "sh", "-euc", script],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, f"{script}\n{done.stdout}"
        return done.stdout

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(30)
        clean_up = CLEAN_UP.format(**self.paths)
        subprocess.run(["unshare", "--mount", "sh", "-euc", clean_up], check=True, timeout=30)

    def _wait(self) -> None:
        for _ in range(1000):
            assert self.process.poll() is None, self.log.read_text()
            if "basic.target" in self._booted():
                return
            time.sleep(0.1)
        raise AssertionError(self.log.read_text() + self._booted())

    def _booted(self) -> str:
        if not self._children(self.process.pid):
            return ""
        return self.run("systemctl list-units --state=active basic.target", check=False)

    @staticmethod
    def _children(pid: int) -> list[str]:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def can_boot() -> bool:
    """Return whether this machine can run a container."""
    return os.getuid() == 0 and Path("/lib/systemd/systemd").exists()


def make_debian(release: str, target: Path, packages: Iterable[str], *options: str) -> Path:
    """Make a root file system of a Debian release, as a folder or a tar file."""
    include = f"--include={','.join(packages)}"
    quick = ["--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io"]
    quick += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "locale", "man")]
    subprocess.run(["mmdebstrap", *quick, include, *options, release, target], check=True)
    return target


def download_wheels(version: str, target: Path) -> Path:
    """Download the packages that `make install` needs for a version of Python."""
    options = ["-qq", "--require-hashes", "--only-binary=:all:", "--python-version", version]
    download = [sys.executable, "-m", "pip", "download", *options, "--dest", target]
    subprocess.run([*download, "--requirement", ROOT / "requirements.txt"], check=True)
    return target
