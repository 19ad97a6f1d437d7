"""docs/operating.md on a machine of its own: each of its commands is run, in its order."""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.conftest import POSTGRES
from tests.live.box import Box, can_boot
from tests.live.sites import ROOT

DOCUMENT = (ROOT / "docs" / "operating.md").read_text()
BLOCK = re.compile(
    r"^## (?P<section>[^\n]*)$|^```sh\n(?P<script>.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMANDS = ("chown", "docker", "flask", "git", "journalctl", "make", "rm", "systemctl")
CURL = "curl --silent --show-error --insecure --resolve example.org:443:127.0.0.1"
SITE = "https://example.org"
READY = f"until {CURL} --fail {SITE}/readyz; do sleep 0.2; done"
ADA = "--cookie /root/ada"
# As on a machine where Posting is installed as documented.
INSTALLED = """
chroot . useradd --system --home-dir /opt/posting --shell /usr/sbin/nologin posting
mkdir -p opt/posting etc/posting/tls etc/nginx/sites-enabled etc/nginx/sites-available \
    etc/systemd/system/posting.service.d usr/local/lib/systemd/system
chroot . install -d -o posting -m 0700 /var/lib/posting /var/backups/posting
echo 'POSTING_PASSWORD_MIN=20' > opt/posting/.env
echo 'server { listen 80 default_server; }' > etc/nginx/sites-available/posting
ln -s ../sites-available/posting etc/nginx/sites-enabled/posting
ln -s /dev/null etc/systemd/system/posting.socket
printf '[Service]\nEnvironment=BIND=10.0.0.9\n' > etc/systemd/system/posting.service.d/machine.conf
"""
CREDENTIALS = """'{"username": "ada", "password": "a long walk by the sea"}'"""

pytestmark = [
    pytest.mark.skipif(bool(POSTGRES), reason="has both databases in one run, on SQLite's turn"),
    pytest.mark.skipif(not can_boot() and "CI" not in os.environ, reason="boots a machine"),
]


def sections():
    """Return the commands of each section."""
    found: dict[str, list[str]] = {}
    for match in BLOCK.finditer(DOCUMENT):
        if match["section"]:
            found[current := match["section"]] = []
        else:
            found[current].append(match["script"])
    return {section: scripts for section, scripts in found.items() if scripts}


def inline():
    """Return the commands that the document names within its text, as they are to be run."""
    found = re.findall(rf"`((?:{'|'.join(COMMANDS)}) [^`]*)`", BLOCK.sub("", DOCUMENT))
    assert len(found) > 10
    flask = "cd /opt/posting && runuser -u posting -- .venv/bin/flask"
    return [re.sub("^flask", flask, command).replace("NAME", "ada") for command in found]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """What `make install` will ask for, for the Python of Debian."""
    folder = tmp_path_factory.mktemp("wheels")
    version = subprocess.run(
        ["/usr/bin/python3", "-c", "import platform; print(platform.python_version())"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    options = ["-qq", "--require-hashes", "--only-binary=:all:", "--python-version", version]
    download = [sys.executable, "-m", "pip", "download", *options, "--dest", folder]
    subprocess.run([*download, "--requirement", ROOT / "requirements.txt"], check=True)
    return folder


@pytest.fixture
def box(tmp_path, wheels):
    box = Box(tmp_path, INSTALLED, wheels=wheels, code=ROOT)
    yield box
    box.stop()


@pytest.fixture
def ask(box):
    """Ask the service for a path, by way of nginx; return the body of its answer."""
    return lambda path, *options: box.run(f"{CURL} {SITE}{path} {' '.join(options)}")


@pytest.fixture
def write(ask):
    def write(title):
        body = f"""'{{"title": "{title}", "content": "x"}}'"""
        assert title in ask("/posts", "--fail", ADA, "--json", body)

    return write


@pytest.fixture
def titles(ask):
    return lambda: re.findall(r'"title":"([^"]*)"', ask("/posts", "--fail", ADA))


def test_each_command_works(box, ask, write, titles):  # noqa: PLR0915 - as long as the document
    prepare(box)
    left = sections()

    *install, promote = left.pop("Install")
    for script in install:
        doctor = box.run(script)
    assert "ok " in doctor
    assert "warning" not in doctor, doctor
    assert "failure" not in doctor, doctor
    box.run("systemd-analyze security --threshold=15 posting.service")  # 10 is safest, 100 is worst
    ask("/signup", "--fail", "--json", CREDENTIALS)
    ask("/signin", "--fail", "--cookie-jar /root/ada", "--json", CREDENTIALS)
    assert "ada is a moderator now." in box.run(promote)
    assert '"role":"moderator"' in ask("/users/me", ADA)
    write("Before the backup")
    [post] = json.loads(ask("/posts", "--fail", ADA))
    ask("/docs/favicon-32x32.png", "--fail", "--output /root/picture.png")
    form = "--form file=@/root/picture.png"  # systemd lets the service start its decoder
    assert '"width":32' in ask(f"/posts/{post['id']}/images", "--fail", ADA, form)

    [change] = left.pop("Change a setting")
    box.run(change)
    short = """'{"username": "bob", "password": "under fifteen"}'"""
    assert '"pointer":"/password"' in ask("/signup", "--json", short)

    backup, restore = left.pop("Back up and restore")
    box.run(backup)
    write("After the backup")
    assert "before-restore" in box.run(restore)
    assert titles() == ["Before the backup"]
    box.run("systemctl start posting-backup.service && ls /var/backups/posting/*day.db")

    release(box)
    log = "git -C /opt/posting log --oneline"
    upgrade, back, forward = left.pop("Upgrade")
    box.run(upgrade)
    assert "The next version" in box.run(log)
    write("After the upgrade")
    release(box)
    box.run("cd /opt/posting && git pull --ff-only")  # which overwrites ORIG_HEAD
    box.run(back)
    assert "The next version" not in box.run(log)
    assert titles() == ["Before the backup"]
    box.run(forward)
    assert "The next version" in box.run(log)
    assert titles() == ["Before the backup"]

    prepare_postgres, move, dump, restore_dump, back = left.pop("Move to Postgres")
    box.run(prepare_postgres)
    box.run(move)
    assert '"role":"moderator"' in ask("/users/me", ADA)  # also her session has come along
    assert titles() == ["Before the backup"]
    box.run(dump)
    write("After the dump")
    box.run(restore_dump)
    assert titles() == ["Before the backup"]
    setting = box.run("grep ^POSTING_DATABASE_URL= /opt/posting/.env")
    box.run(back)
    assert '"role":"moderator"' in ask("/users/me", ADA)
    assert titles() == ["Before the backup"]
    box.run(f"echo '{setting.strip()}' >> /opt/posting/.env; systemctl restart posting")
    doctor = box.run("cd /opt/posting && runuser -u posting -- .venv/bin/flask doctor")
    assert "failure" not in doctor, doctor
    box.run("systemctl stop postgresql && systemctl --no-block restart posting && sleep 4")
    box.run("systemctl start postgresql")
    box.run(READY)  # by itself

    listen, second, share = left.pop("A second machine")
    box.run(listen)
    box.run(second)
    box.run(share)
    box.run(READY)
    assert {tuple(titles()) for _ in range(4)} == {("Before the backup",)}
    assert "10.0.0.2:8000" in box.run("ss --listening --tcp --numeric")

    for command in inline():
        box.run(command)
    box.run(READY)

    [watch] = left.pop("What to watch")
    assert "active (running)" in box.run(watch)
    assert "Traceback" not in box.run("journalctl --unit posting --no-pager")
    assert left == {}, "commands that nobody has run"
    files = box.run("stat --format '%a %U %n' /var/lib/posting/* /var/backups/posting/*")
    assert all(line.startswith("600 posting ") for line in files.splitlines()), files


def prepare(box):
    """Make of the box what a bare Debian is, and put the code where it can be cloned from."""
    box.run(
        """
        echo 127.0.0.1 example.org >> /etc/hosts
        for address in 10.0.0.1 10.0.0.2; do ip address add $address/32 dev lo; done
        echo 'APT::Get::Upgrade "false";' > /etc/apt/apt.conf.d/no-network
        pg_createcluster 15 main
        git config --system --add safe.directory '*'
        git config --system user.name somebody
        git config --system user.email somebody@example.org
        git config --system url./srv/posting.insteadOf https://example.org/posting.git
        mkdir -p /srv/posting
        cd /code
        git ls-files -z --cached --others --exclude-standard \\
            | tar --null --files-from - --create --ignore-failed-read | tar -x -C /srv/posting
        cd /srv/posting
        git init --quiet
        git add --all
        git commit --quiet --allow-empty --message 'As it is'
        """
    )


def release(box):
    """Publish a new version."""
    box.run("cd /srv/posting && git commit --quiet --allow-empty --message 'The next version'")
