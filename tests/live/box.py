"""A container on this machine: systemd on a copy of the root file system, without a network.

The copy is an overlay whose changes are in memory and end with the container. Any installation of
Posting, the sites of nginx and the clusters of Postgres are removed from the copy; a running
cluster would change below the overlay.
"""

import os
import subprocess
import time
from pathlib import Path

BOOT = """
set -e
mount -t tmpfs -o size=4g box {folder}
mkdir {folder}/upper {folder}/work {folder}/root
mount -t overlay -o lowerdir=/,upperdir={folder}/upper,workdir={folder}/work overlay {folder}/root
cd {folder}/root
mount -t proc proc proc
{leftovers}
chroot . userdel --force posting || true
chroot . groupdel posting || true
rm -rf opt/posting etc/posting var/lib/posting var/backups/posting srv/posting var/cache/posting-* \
    etc/nginx/sites-available/posting etc/nginx/sites-enabled/* etc/nginx/conf.d/* \
    var/log/nginx/* var/log/journal/* etc/postgresql/*
mkdir -p var/lib/postgresql
mount -t tmpfs tmpfs var/lib/postgresql
chroot . chown postgres: /var/lib/postgresql || true
find etc/systemd usr/local/lib/systemd -name 'posting*' -exec rm -rf {{}} + || true
mount --bind proc/sys proc/sys
mount -o remount,ro,bind proc/sys
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd systemd sys/fs/cgroup/systemd
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --rbind /dev dev
{mounts}
ip link set lo up
mkdir old
pivot_root . old
umount --lazy old
exec env -i container=box PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=basic.target
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

    `leftovers` is a script that runs in the copy before an installation is removed from it.
    """

    def __init__(self, folder: Path, leftovers: str = "", **shared: Path) -> None:
        self.log = folder / "boot.log"
        root = folder / "box"
        root.mkdir()
        mounts = "\n".join(
            f"mkdir -p {name} && mount --bind {path} {name}" for name, path in shared.items()
        )
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
                    *("--net", "--uts", "--ipc", "--cgroup", "--propagation=private"),
                    *("sh", "-c", BOOT.format(folder=root, mounts=mounts, leftovers=leftovers)),
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

    def _wait(self) -> None:
        for _ in range(200):
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
