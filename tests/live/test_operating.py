"""The commands of docs/operating.md, run in order on a machine of their own."""

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
# Leftovers of an earlier installation, which the box removes.
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
    pytest.mark.skipif(bool(POSTGRES), reason="uses both databases, and runs with SQLite"),
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
    """Return the commands in the text, as they have to be run."""
    found = re.findall(rf"`((?:{'|'.join(COMMANDS)}) [^`]*)`", BLOCK.sub("", DOCUMENT))
    assert len(found) > 10
    flask = "cd /opt/posting && runuser -u posting -- .venv/bin/flask"
    return [re.sub("^flask", flask, command).replace("NAME", "ada") for command in found]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A folder with the packages that `make install` needs, for the Python of Debian."""
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
def request_path(box):
    """Send a request through nginx, and return the body of the response."""
    return lambda path, *options: box.run(f"{CURL} {SITE}{path} {' '.join(options)}")


@pytest.fixture
def create_post(request_path):
    def create_post(title):
        body = f"""'{{"title": "{title}", "content": "x"}}'"""
        assert title in request_path("/posts", "--fail", ADA, "--json", body)

    return create_post


@pytest.fixture
def titles(request_path):
    return lambda: re.findall(r'"title":"([^"]*)"', request_path("/posts", "--fail", ADA))


@pytest.mark.timeout(1800)
def test_each_command_works(box, request_path, create_post, titles):  # noqa: PLR0915 - as long as the document
    prepare(box)
    left = sections()

    *install, promote = left.pop("Install")
    for script in install:
        doctor = box.run(script)
    assert "ok " in doctor
    assert "warning" not in doctor, doctor
    assert "failure" not in doctor, doctor
    box.run("systemd-analyze security --threshold=15 posting.service")  # 10 is safest, 100 is worst
    request_path("/signup", "--fail", "--json", CREDENTIALS)
    request_path("/signin", "--fail", "--cookie-jar /root/ada", "--json", CREDENTIALS)
    assert "ada is a moderator now." in box.run(promote)
    assert '"role":"moderator"' in request_path("/users/me", ADA)
    create_post("Before the backup")
    [post] = json.loads(request_path("/posts", "--fail", ADA))
    request_path("/docs/favicon-32x32.png", "--fail", "--output /root/picture.png")
    form = "--form file=@/root/picture.png"  # the sandbox of systemd allows the decoder
    assert '"width":32' in request_path(f"/posts/{post['id']}/images", "--fail", ADA, form)

    [change] = left.pop("Change a setting")
    box.run(change)
    short = """'{"username": "bob", "password": "under fifteen"}'"""
    assert '"pointer":"/password"' in request_path("/signup", "--json", short)

    backup, restore = left.pop("Back up and restore")
    box.run(backup)
    create_post("After the backup")
    assert "before-restore" in box.run(restore)
    assert titles() == ["Before the backup"]
    box.run("systemctl start posting-backup.service && ls /var/backups/posting/*day.db")

    release(box)
    log = "git -C /opt/posting log --oneline"
    upgrade, back, forward = left.pop("Upgrade")
    box.run(upgrade)
    assert "The next version" in box.run(log)
    create_post("After the upgrade")
    release(box)
    box.run("cd /opt/posting && git pull --ff-only")  # overwrites ORIG_HEAD
    box.run(back)
    assert "The next version" not in box.run(log)
    assert titles() == ["Before the backup"]
    box.run(forward)
    assert "The next version" in box.run(log)
    assert titles() == ["Before the backup"]

    prepare_postgres, move, dump, restore_dump, back = left.pop("Move to Postgres")
    box.run(prepare_postgres)
    box.run(move)
    assert '"role":"moderator"' in request_path("/users/me", ADA)  # her session was moved too
    assert titles() == ["Before the backup"]
    box.run(dump)
    create_post("After the dump")
    box.run(restore_dump)
    assert titles() == ["Before the backup"]
    setting = box.run("grep ^POSTING_DATABASE_URL= /opt/posting/.env")
    box.run(back)
    assert '"role":"moderator"' in request_path("/users/me", ADA)
    assert titles() == ["Before the backup"]
    box.run(f"echo '{setting.strip()}' >> /opt/posting/.env; systemctl restart posting")
    doctor = box.run("cd /opt/posting && runuser -u posting -- .venv/bin/flask doctor")
    assert "failure" not in doctor, doctor
    box.run("systemctl stop postgresql && systemctl --no-block restart posting && sleep 4")
    box.run("systemctl start postgresql")
    box.run(READY)  # without a restart

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
    assert left == {}, "commands that were not run"
    files = box.run("stat --format '%a %U %n' /var/lib/posting/* /var/backups/posting/*")
    assert all(line.startswith("600 posting ") for line in files.splitlines()), files


def prepare(box):
    """Turn the box into a bare Debian, with the code where it can be cloned from."""
    box.run(
        """
        echo 127.0.0.1 example.org >> /etc/hosts
        for address in 10.0.0.1 10.0.0.2; do ip address add $address/32 dev lo; done
        echo 'APT::Get::Upgrade "false";' > /etc/apt/apt.conf.d/no-network
        pg_createcluster 15 main
        git config --system --add safe.directory '*'
        git config --system user.name tester
        git config --system user.email tester@example.org
        git config --system url./srv/posting.insteadOf https://example.org/posting.git
        mkdir -p /srv/posting
        cd /code
        git ls-files -z --cached --others --exclude-standard \\
            | tar --null --files-from - --create --ignore-failed-read | tar -x -C /srv/posting
        cd /srv/posting
        git init --quiet
        git add --all
        git commit --quiet --allow-empty --message 'The installed version'
        """
    )


def release(box):
    """Publish a new version."""
    box.run("cd /srv/posting && git commit --quiet --allow-empty --message 'The next version'")
