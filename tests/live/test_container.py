"""The commands of docs/operating.md for containers, run by Docker on Debian 13.

The machine has no network. Its base images are made from Debian's packages, and hold what the build
would download. The image of nginx has the user and the folders of the official one.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import POSTGRES
from tests.live import guide
from tests.live.box import Box, can_boot, download_wheels, make_debian
from tests.live.clients import scaled
from tests.live.conftest import free_port
from tests.live.guide import (
    ADA,
    CREDENTIALS,
    CURL,
    READY,
    SITE,
    create_post,
    list_titles,
    request_path,
)
from tests.live.load import wait_until
from tests.live.sites import ROOT, require_programs

RELEASE = "trixie"
DEPLOY = "cd /opt/posting/deploy && "
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
[BASE] = set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
[PROXY] = re.findall(r"image: (nginx\S+)", (ROOT / "deploy" / "compose.yaml").read_text())
MIGRATIONS = Path("posting/db/migrations/versions")
MACHINE = ("systemd", "systemd-sysv", "dbus", "iptables", "ca-certificates")
NGINX = """
FROM {base}
RUN apt-get install --yes --no-install-recommends nginx-light
RUN groupadd --system --gid 101 nginx && useradd --system --gid nginx --uid 101 nginx
RUN mkdir -p /etc/nginx/conf.d && echo '\\
    user nginx; events {{ }} error_log /dev/stderr; \\
    http {{ include mime.types; access_log /dev/stdout; include conf.d/*.conf; }} \\
' > /etc/nginx/nginx.conf
STOPSIGNAL SIGQUIT
"""
MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{number:04}", "{number_before:04}"


def upgrade() -> None:
    op.create_table("likes", sa.Column("id", sa.String(21), primary_key=True))
"""


def make_image(folder):
    """Make an image with the packages that are installed in it, which apt and pip find there."""
    install = "apt-get install --yes --no-install-recommends"
    wanted = " ".join(re.findall(rf"{install} ([a-z0-9 -]+)", DOCKERFILE, re.MULTILINE))
    root = folder / "image"
    download = f'chroot "$1" {install} --download-only {wanted} nginx-light'
    hook = f"--customize-hook={download}"
    make_debian(RELEASE, root, ["ca-certificates"], "--skip=cleanup/apt", hook)
    [python] = root.glob("var/cache/apt/archives/python3_*.deb")
    download_wheels(python.name.split("_")[1].partition("-")[0], root / "wheels")
    (root / "etc/pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    (images := folder / "images").mkdir()
    (images / "nginx").write_text(NGINX.format(base=BASE))
    subprocess.run(["tar", "-C", root, "-cf", images / "base.tar", "."], check=True)
    return images


@pytest.fixture
def box(tmp_path):
    require_programs("mmdebstrap")
    with ThreadPoolExecutor(2) as pool:
        images = pool.submit(make_image, tmp_path)
        packages = {*MACHINE, *guide.packages(guide.CONTAINERS)}
        base = pool.submit(make_debian, RELEASE, tmp_path / "base", packages)
    box = Box(tmp_path, "", base.result(), code=ROOT, images=images.result())
    yield box
    box.stop()
    shutil.rmtree(tmp_path)  # two gigabytes


@pytest.mark.skipif(bool(POSTGRES), reason="runs with SQLite")
@pytest.mark.skipif(
    "CI" not in os.environ and not (can_boot() and scaled(False, True)),
    reason="boots a machine for two minutes, in CI and make live",
)
@pytest.mark.timeout(1800)
def test_the_commands_of_the_guide_work(box):
    guide.publish(box)
    box.run(
        f"""
        systemctl start docker
        docker import /images/base.tar {BASE}
        docker build --tag {PROXY} - < /images/nginx
        """
    )
    scripts = guide.sections()[guide.CONTAINERS]
    install, hook, commands, backup, restore, upgrade, back = [
        script.replace("build --pull", "build") for script in scripts
    ]

    assert "ok" in box.run(install)
    request_path(box, "/signup", "--fail", "--json", CREDENTIALS)
    request_path(box, "/signin", "--fail", "--cookie-jar /root/ada", "--json", CREDENTIALS)
    post = create_post(box, "Before the backup")
    request_path(box, "/docs/favicon-32x32.png", "--fail", "--output /root/picture.png")
    form = "--form file=@/root/picture.png"  # the container allows the decoder
    assert '"width":32' in request_path(box, f"/posts/{post['id']}/images", "--fail", ADA, form)
    assert "HTTP/2 200" in request_path(box, "/", "--head")
    shown = box.run(commands)
    assert "ada is an owner now." in shown
    assert "failure" not in shown
    assert "warning" not in shown
    assert "(healthy)" in shown
    check_container(box)

    box.run(hook)
    box.run(
        """
        mkdir /root/renewed
        openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=renewed \\
            -keyout /root/renewed/privkey.pem -out /root/renewed/fullchain.pem
        RENEWED_LINEAGE=/root/renewed /usr/local/sbin/posting-certificate
        """
    )
    wait_until(lambda: "CN=renewed" in box.run(f"{CURL} -v {SITE}/").replace(" ", ""))

    box.run(backup)
    box.run("/etc/cron.daily/posting && ls /var/backups/posting/*day/posting.db")
    create_post(box, "After the backup")
    box.run(restore)
    assert list_titles(box) == ["Before the backup"]

    number = publish_a_migration(box)
    box.run(upgrade + READY)
    assert f"{number:04}" in box.run(f"{DEPLOY}docker compose exec posting flask db current")
    create_post(box, "After the upgrade")
    box.run(back + READY)
    assert list_titles(box) == ["Before the backup"]
    forward = upgrade[upgrade.index("docker compose build") :]
    box.run(f"{DEPLOY}git switch -\n{forward}{READY}")
    assert list_titles(box) == ["Before the backup"]
    assert f"{number:04}" in box.run(f"{DEPLOY}docker compose exec posting flask db current")

    box.run("echo Be kind. > /opt/posting/deploy/about.md")
    docker = [
        command for part in (guide.CONTAINERS, "Uninstall") for command in guide.inline()[part]
    ]
    for command in docker:
        if command.startswith("docker"):
            folder = "/opt/posting/deploy" if "compose" in command else "/opt/posting"
            box.run(f"cd {folder} && {command}")
            if command == "docker compose restart posting":
                box.run(READY)
                assert "Be kind." in request_path(box, "/about", "--fail")
    assert (
        box.run("docker ps --all --quiet; docker volume ls --quiet; docker images posting -q") == ""
    )


def test_the_guide_deletes_each_file_that_it_creates():
    scripts = "".join(guide.sections()[guide.CONTAINERS])
    created = re.findall(r"^(?:cat >|install -d .*|git clone \S+) (/\S+)", scripts, re.MULTILINE)
    assert len(created) > 4
    deleted = re.findall(r"`(/\S+)`", guide.DOCUMENT.partition("In containers, run")[2])
    for path in map(Path, created):
        assert any(map(path.is_relative_to, [*deleted, "/var/www/html"])), path


def check_container(box):
    """Check what is in the container, what it may do, and that it stops in order."""
    in_container = f"{DEPLOY}docker compose exec posting"
    assert box.run(f"{in_container} id --user") == "10001\n"
    files = box.run(f"{in_container} ls -A . deploy").split()
    assert sorted(files) == sorted(
        ".: .venv __pycache__ deploy posting wsgi.py "
        "deploy: __pycache__ backup.sh gunicorn.conf.py healthcheck.py serve.py".split()
    )
    assert (
        box.run(f"{in_container} find /usr/bin .venv/bin -name make -o -name 'pip*' -o -name gcc")
        == ""
    )
    assert "Read-only" in box.run(f"{in_container} touch new", check=False)
    assert box.run(f"{in_container} ls /sys/class/net") == "lo\n"
    sockets = box.run(
        f"{in_container} stat --format '%a %u %g' /run/posting /run/posting/posting.sock"
    )
    assert sockets.splitlines()[0] == "750 10001 101"

    box.run(f"{DEPLOY}docker compose restart posting")
    box.run(READY)  # without a restart of nginx
    state = "docker inspect posting-posting-1 --format '{{ .State.ExitCode }}'"
    assert box.run(f"{DEPLOY}docker compose stop posting && {state}").endswith("0\n")
    assert "Shutting down: Master" in box.run(f"{DEPLOY}docker compose logs posting")
    assert "502" in box.run(f"{CURL} {SITE}/posts")
    box.run(f"{DEPLOY}docker compose up --detach --wait")
    assert "is not set in deploy/.env" in box.run(
        f"{DEPLOY}docker compose --env-file /dev/null config", check=False
    )


def publish_a_migration(box):
    """Publish a version with another schema, and return the number of the schema."""
    newest = max(int(file.name[:4]) for file in (ROOT / MIGRATIONS).glob("[0-9]*.py"))
    migration = MIGRATION.format(number=newest + 1, number_before=newest)
    box.run(f"echo '{migration}' > /srv/posting/{MIGRATIONS}/{newest + 1:04}_likes.py")
    guide.publish_next_version(box)
    return newest + 1


class TestHealthCheck:
    """The program by which Docker sees whether the service is ready."""

    @pytest.fixture
    def check(self):
        def check(**environment):
            return subprocess.run(
                [sys.executable, ROOT / "deploy" / "healthcheck.py"],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

        return check

    def test_a_service_that_is_ready(self, serve, check):
        port = serve().url.rpartition(":")[2]
        for address in ("", "127.0.0.1", "0.0.0.0"):
            result = check(BIND=address, PORT=port)
            assert (result.returncode, result.stderr) == (0, "")

    def test_a_socket(self, start_site, check):
        site = start_site()
        path = site.gunicorns[0].listener.getsockname()
        assert check(BIND=f"unix:{path}").returncode == 0

    def test_a_service_that_is_not_ready(self, serve, check, database):
        port = serve().url.rpartition(":")[2]
        database.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
        result = check(PORT=port)
        assert result.returncode == 1
        assert "schema" in result.stderr

    def test_no_service(self, check, tmp_path):
        for address in ("127.0.0.1", f"unix:{tmp_path}/none"):
            result = check(BIND=address, PORT=str(free_port()))
            assert result.returncode == 1
            assert result.stderr.startswith("The service does not answer: ")
            assert "Traceback" not in result.stderr
