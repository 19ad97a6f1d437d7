"""The commands of docs/operating.md, run in order on a machine of their own."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import POSTGRES
from tests.live import guide
from tests.live.box import Box, can_boot, download_wheels, make_debian
from tests.live.clients import scaled
from tests.live.guide import (
    ADA,
    CREDENTIALS,
    CURL,
    HOST,
    READY,
    SITE,
    create_post,
    list_titles,
    request_path,
)
from tests.live.load import wait_until
from tests.live.sites import ROOT, require_programs

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
# Packages of a machine beside those of the guide.
MACHINE = ("systemd", "systemd-sysv", "dbus", "iproute2", "ca-certificates", "opensmtpd")
# An authority that issues certificates as Let's Encrypt does, and the settings of certbot for it.
PEBBLE = {
    "listenAddress": "127.0.0.1:14000",
    "managementListenAddress": "127.0.0.1:15000",
    "certificate": "/root/pebble.pem",
    "privateKey": "/root/pebble.key",
    "httpPort": 80,
}
CERTBOT = """
server = https://localhost:14000/dir
no-verify-ssl = True
"""
OTHER_SITE = "server { listen 80 default_server; listen [::]:80 default_server; return 418; }"

pytestmark = [
    pytest.mark.skipif(bool(POSTGRES), reason="uses both databases, and runs with SQLite"),
    pytest.mark.skipif(not can_boot() and "CI" not in os.environ, reason="boots a machine"),
]


@pytest.fixture(
    params=[
        "this release",
        pytest.param(
            "trixie", marks=pytest.mark.skipif(scaled(True, False), reason="runs in make live")
        ),
    ]
)
def base(request, tmp_path):
    """The root file system of a machine."""
    if request.param == "this release":
        yield Path("/")
    else:
        require_programs("mmdebstrap")
        needed = guide.packages(*(set(guide.sections()) - {guide.CONTAINERS}))
        yield make_debian(request.param, tmp_path / "base", {*MACHINE, *needed})
        shutil.rmtree(tmp_path / "base")  # a gigabyte


@pytest.fixture
def box(tmp_path, base):
    require_programs("pebble", "certbot")
    (programs := tmp_path / "programs").mkdir()
    shutil.copy(shutil.which("pebble") or "pebble", programs)
    show = ["python3", "-c", "import platform; print(platform.python_version())"]
    version = subprocess.check_output(["chroot", base, *show], text=True).strip()
    wheels = download_wheels(version, tmp_path / "wheels")
    box = Box(tmp_path, INSTALLED, base, wheels=wheels, code=ROOT, programs=programs)
    yield box
    box.stop()


@pytest.mark.timeout(1800)
def test_each_command_works(box):  # noqa: PLR0915 - as long as the document
    prepare(box)
    left = guide.sections()
    del left[guide.CONTAINERS]  # test_container.py runs it

    *install, examine, find_link, promote = left.pop("Install")
    for script in install:
        box.run(script)
    doctor = box.run(examine)
    assert "ok " in doctor
    assert "warning" not in doctor, doctor
    assert "failure" not in doctor, doctor
    assert "[warn]" not in box.run("nginx -t")
    for unit in ("posting.service", "posting-backup.service"):  # 10 is safest, 100 is worst
        box.run(f"systemd-analyze security --threshold=15 {unit}")
    assert re.fullmatch(rf"({SITE}/signup#\S+\n)+", box.run(find_link))
    request_path(box, "/signup", "--fail", "--json", CREDENTIALS)
    request_path(box, "/signin", "--fail", "--cookie-jar /root/ada", "--json", CREDENTIALS)
    assert "ada is an owner now." in box.run(promote)
    assert '"role":"owner"' in request_path(box, "/users/me", ADA)
    post = create_post(box, "Before the backup")
    request_path(box, "/docs/favicon-32x32.png", "--fail", "--output /root/picture.png")
    form = "--form file=@/root/picture.png"  # the sandbox of systemd allows the decoder
    image = request_path(box, f"/posts/{post['id']}/images", "--fail", ADA, form)
    assert '"width":32' in image
    assert "HTTP/2 200" in request_path(box, "/", "--head")

    check_certificates(box)
    check_another_default_server(box)

    [name] = left.pop("Set up your community")
    box.run(name)
    front, about = request_path(box, "/"), request_path(box, "/about")
    assert "The Loom" in front
    assert "A place for people who weave." in front
    assert "<p>Be kind." in about
    let_people_in(box, left.pop("Let people in"))
    box.run("sed -i /POSTING_SIGNUP/d /opt/posting/.env && systemctl restart posting")

    [send] = left.pop("Send mails")
    send_mails(box, send)
    tell_programs(box, *left.pop("Tell other programs"))

    [read_log] = left.pop("Look after the community")
    assert "operator approved user " in box.run(read_log)

    [change] = left.pop("Change a setting")
    box.run(change)
    short = """'{"username": "bob", "password": "under fifteen"}'"""
    assert '"pointer":"/password"' in request_path(box, "/signup", "--json", short)

    [close] = left.pop("Let only members read")
    path = f"/images/{json.loads(image)['id']}"
    status = "--output /dev/null --write-out '%{http_code}'"
    assert request_path(box, path, status) == "200"
    box.run(close)
    assert [request_path(box, path, status), request_path(box, path, status, ADA)] == ["401", "200"]
    doctor = box.run("cd /opt/posting && runuser -u posting -- .venv/bin/flask doctor")
    assert "nginx caches nothing that only members may read" in doctor
    box.run("sed -i /POSTING_READING/d /opt/posting/.env && systemctl restart posting")

    refuse_to_start(box)

    backup, restore = left.pop("Back up and restore")
    box.run("echo Rules > /var/lib/posting/about.md && chmod 0640 /var/lib/posting/about.md")
    box.run("chown posting: /var/lib/posting/about.md")
    box.run(backup)
    create_post(box, "After the backup")
    box.run("echo Other rules > /var/lib/posting/about.md")
    restored = box.run(restore)
    assert "posting.db.before-restore-" in restored
    assert "about.md.before-restore-" in restored
    assert "settings" not in restored
    assert list_titles(box) == ["Before the backup"]
    assert "<p>Rules</p>" in request_path(box, "/about", "--fail")
    box.run("systemctl start posting-backup.service")
    for folder in ("*day/", "week-*/"):
        nightly = box.run(f"cd /var/backups/posting && ls -A {folder}")
        assert nightly.split() == [".env", "about.md", "posting.db"]
    fail_backup(box)

    guide.publish_next_version(box)
    log = "git -C /opt/posting log --oneline"
    upgrade, back, forward = left.pop("Upgrade")
    box.run(upgrade)
    assert "The next version" in box.run(log)
    create_post(box, "After the upgrade")
    guide.publish_next_version(box)
    box.run("cd /opt/posting && git pull --ff-only")  # overwrites ORIG_HEAD
    box.run(back)
    assert "The next version" not in box.run(log)
    assert list_titles(box) == ["Before the backup"]
    box.run(forward)
    assert "The next version" in box.run(log)
    assert list_titles(box) == ["Before the backup"]

    prepare_postgres, move, dump, restore_dump, back = left.pop("Move to Postgres")
    box.run(prepare_postgres)
    box.run(move)
    assert '"role":"owner"' in request_path(box, "/users/me", ADA)  # her session was moved too
    assert list_titles(box) == ["Before the backup"]
    box.run(dump)
    box.run("systemctl start posting-backup.service")
    assert box.run("ls /var/backups/posting/week-*/").split() == ["about.md", "posting.dump"]
    create_post(box, "After the dump")
    box.run(restore_dump)
    assert list_titles(box) == ["Before the backup"]
    setting = box.run("grep ^POSTING_DATABASE_URL= /opt/posting/.env")
    box.run(back)
    assert '"role":"owner"' in request_path(box, "/users/me", ADA)
    assert list_titles(box) == ["Before the backup"]
    box.run(f"echo '{setting.strip()}' >> /opt/posting/.env; systemctl restart posting")
    doctor = box.run("cd /opt/posting && runuser -u posting -- .venv/bin/flask doctor")
    assert "failure" not in doctor, doctor
    box.run("systemctl stop postgresql && systemctl --no-block restart posting && sleep 4")
    box.run("systemctl start postgresql")
    box.run(READY)  # without a restart

    listen, second, share = left.pop("A second machine")
    box.run(listen)
    box.run(second)
    workers = box.run("pgrep --parent $(cat /run/nginx.pid)").split()
    box.run(share)
    # For a moment after a reload, the former workers of nginx still pass requests to the socket.
    box.run(f"while kill -0 {' '.join(workers)} 2> /dev/null; do sleep 0.1; done")
    box.run(READY)
    assert {tuple(list_titles(box)) for _ in range(4)} == {("Before the backup",)}
    assert "10.0.0.2:8000" in box.run("ss --listening --tcp --numeric")

    for section, commands in guide.inline().items():
        for command in commands if section not in {guide.CONTAINERS, "Uninstall"} else ():
            flask = "cd /opt/posting && runuser -u posting -- .venv/bin/flask"
            box.run(re.sub("^flask", flask, command).replace("NAME", "hedy"))
    box.run(READY)

    [watch] = left.pop("What to watch")
    assert "active (running)" in box.run(watch)
    assert "Traceback" not in box.run("journalctl --unit posting --no-pager")
    assert "disabled" in box.run("systemctl is-enabled posting-backup.timer || true")
    files = box.run("find /var/lib/posting /var/backups/posting -printf '%y %m %u %p\n'")
    private = re.compile(r"(d 700|f 600) posting .*|f 640 posting .*/about\.md.*")
    assert all(map(private.fullmatch, files.splitlines())), files

    [uninstall] = left.pop("Uninstall")
    box.run(uninstall)
    assert "certbot delete" in guide.inline()["Uninstall"]
    box.run(f"certbot delete --non-interactive --cert-name {HOST}")
    mails = "-path /var/spool/smtpd -prune"  # whose server deletes files meanwhile
    folders = "/etc /opt /run /usr/local /var"
    assert box.run(f"find {folders} {mails} -o -name '*posting*' -print") == ""
    assert "posting" not in box.run("cat /etc/passwd /etc/group; systemctl list-units --all")
    assert "posting" not in box.run("runuser -u postgres -- psql --list")
    box.run("nginx -t && systemctl is-active nginx")
    assert left == {}, "commands that were not run"


def let_people_in(box, scripts):
    setting, decide, invite, recover, leave = scripts
    box.run(setting)
    hedy = '"username": "hedy", "password": "a hop between channels"'
    applied = f"""'{{{hedy}, "application": "Hello."}}'"""
    assert '"state":"pending"' in request_path(box, "/signup", "--json", applied)
    decided = box.run(decide)
    assert "application:       Hello." in decided
    assert "hedy may sign in now." in decided
    assert '"username":"hedy"' in request_path(box, "/signin", "--json", f"'{{{hedy}}}'")
    assert re.findall(rf"^{SITE}/(\w+)#", box.run(invite), re.MULTILINE) == ["signup", "reset"]
    code = box.run(recover).strip().rpartition("#")[2]
    reset = f"""'{{"code": "{code}", "password": "a foot of copper wire"}}'"""
    request_path(box, "/password-resets", "--fail", "--json", reset)
    left = box.run(leave)
    assert "hedy" not in left
    assert "grace is deleted." in left


def send_mails(box, script):
    """Hand a mail over to OpenSMTPD, which keeps it in a file."""
    box.run(
        """
        systemctl stop opensmtpd || true  # with its own settings
        touch /root/mails && chmod 666 /root/mails && chmod 711 /root
        cat > /root/smtpd.conf <<'END'
listen on 127.0.0.1 port 2525
table everybody { "@" = "nobody" }
action "keep" mda "/bin/sh -c 'cat >> /root/mails'" virtual <everybody>
match from any for any action "keep"
END
        systemd-run --quiet --unit smtpd-of-tests smtpd -d -f /root/smtpd.conf
        until ss --listening --tcp --numeric | grep -q :2525; do sleep 0.1; done
        """
    )
    url = "smtps://posting%40example.org:password@mail.example.org"
    assert url in script
    box.run(script.replace(url, "smtp://localhost:2525"))
    box.run("until grep -q 'Mails from The Loom' /root/mails; do sleep 0.1; done")
    box.run(READY)
    assert '"mail":true' in request_path(box, "/site")
    doctor = box.run("cd /opt/posting && runuser -u posting -- .venv/bin/flask doctor")
    assert "The mail server localhost, port 2525 can be used" in doctor
    box.run("sed -i '/POSTING_SMTP_URL/d; /POSTING_MAIL_FROM/d' /opt/posting/.env")
    box.run("systemctl restart posting && systemctl stop smtpd-of-tests")
    box.run(READY)


RECEIVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open("/root/events", "a") as file:
            print(json.dumps([body, dict(self.headers)]), file=file)
        self.send_response(204)
        self.end_headers()

HTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
"""
VERIFY = """
import json, sys
from standardwebhooks import Webhook

for line in open("/root/events"):
    body, headers = json.loads(line)
    print(Webhook(sys.argv[1]).verify(body, headers)["type"])
"""


def tell_programs(box, create, ask):
    """Create a webhook for a program on the box, and verify what it gets."""
    python = "/opt/posting/.venv/bin/python"
    box.run("echo POSTING_WEBHOOKS=all >> /opt/posting/.env && systemctl restart posting")
    for name, program in (("receive", RECEIVER), ("verify", VERIFY)):
        box.run(f"cat > /root/{name}.py <<'END'{program}END")
    box.run(f"systemd-run --quiet --unit receiver {python} /root/receive.py")
    box.run("until ss --listening --tcp --numeric | grep -q :9000; do sleep 0.1; done")
    box.run(READY)
    url = "https://chat.example.net/posting"
    assert url in create
    create = create.replace(url, "http://127.0.0.1:9000/").replace("https://example.org", SITE)
    printed = box.run(create.replace("curl ", f"{CURL} "))
    webhook = json.loads(printed[printed.index('{"id"') :].splitlines()[-1])
    wait_until(lambda: "webhook.created" in box.run("cat /root/events || true"))
    assert box.run(f"{python} /root/verify.py {webhook['secret']}") == "webhook.created\n"
    ask = ask.replace("V1StGXR8_Z5jdHi6B-myT", webhook["id"]).replace("https://example.org", SITE)
    wait_until(lambda: '"state":"delivered"' in box.run(ask.replace("curl ", f"{CURL} ")))
    request_path(box, f"/webhooks/{webhook['id']}", "--fail", "--request DELETE", ADA)
    box.run("sed -i '/POSTING_WEBHOOKS/d' /opt/posting/.env && systemctl restart posting")
    box.run("systemctl stop receiver")
    box.run(READY)


def check_certificates(box):
    """Check that the site has the certificate of the authority, and the next one once renewed."""
    show = f"echo | openssl s_client -connect 127.0.0.1:443 -servername {HOST} 2> /dev/null"
    show = f"({show}) | openssl x509 -noout -issuer -serial"
    first = box.run(show)
    assert "Pebble" in first
    assert "certbot.timer" in box.run("systemctl list-timers --no-pager")
    box.run("certbot renew --force-renewal --no-random-sleep-on-renew")
    wait_until(lambda: box.run(show) != first)  # nginx reloads in the background
    assert "Pebble" in box.run(show)


def check_another_default_server(box):
    """Check what the guide says about another site with a default server."""
    other = "/etc/nginx/sites-enabled/other"
    box.run(f"echo '{OTHER_SITE}' > {other}")
    assert "a duplicate default server" in box.run("nginx -t", check=False)
    [cure] = [command for command in guide.inline()["Troubleshooting"] if command.startswith("sed")]
    site = "/etc/nginx/sites-available/posting"
    box.run(f"cp {site} /root/site && {cure} && nginx -t && systemctl reload nginx")
    unknown_host = f"{CURL} --output /dev/null --write-out '%{{http_code}}' http://127.0.0.1/"
    wait_until(lambda: box.run(unknown_host, check=False) == "418")
    assert "ok" in box.run(f"{CURL} --fail {SITE}/readyz")
    box.run(f"rm {other} && cp /root/site {site} && nginx -t && systemctl reload nginx")


def prepare(box):
    """Turn the box into a bare Debian with the addresses of two machines and an authority."""
    guide.publish(box)
    box.run(
        f"""
        for address in 10.0.0.1 10.0.0.2; do ip address add $address/32 dev lo; done
        pg_createcluster "$(ls /usr/lib/postgresql)" main
        echo '{CERTBOT}' >> /etc/letsencrypt/cli.ini
        echo '{json.dumps({"pebble": PEBBLE})}' > /root/pebble.json
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \\
            -keyout /root/pebble.key -out /root/pebble.pem
        systemd-run --setenv=PEBBLE_VA_NOSLEEP=1 /programs/pebble -config /root/pebble.json
        until curl --silent --fail --insecure https://localhost:15000/roots/0 \\
            > /usr/local/share/ca-certificates/pebble.crt; do sleep 0.2; done
        update-ca-certificates
        """
    )


def fail_backup(box):
    """Let the nightly backup fail, and check that the log says so."""
    failed = "journalctl --unit posting-backup-failed --priority err --no-pager"
    assert "has failed" not in box.run(failed, check=False)
    box.run("chmod 0600 /opt/posting/.env && ! systemctl start posting-backup.service")
    box.run(f"until {failed} | grep --quiet 'The backup of Posting has failed'; do sleep 0.2; done")
    box.run("chmod 0640 /opt/posting/.env && systemctl start posting-backup.service")


def refuse_to_start(box):
    """Start with a mistake in `.env`: systemd gives up, even if requests wait in the socket."""
    box.run("echo 'POSTING_SIGNUP: closed' >> /opt/posting/.env; systemctl restart posting || true")
    box.run(f"{CURL} {SITE}/readyz & sleep 30; wait")
    log = box.run("journalctl --unit posting --no-pager")
    line = f"posting: /opt/posting/.env, line {int(box.run('wc -l < /opt/posting/.env'))} is "
    refused = log.count(f"{line}not NAME=value")
    assert 1 < refused <= 6, log
    flask = "cd /opt/posting && runuser -u posting -- .venv/bin/flask"
    assert f"\n{line}" in "\n" + box.run(f"{flask} doctor || true")
    assert box.run("systemctl is-failed posting.service posting.socket").split() == ["failed"] * 2
    box.run("sed -i '$d' /opt/posting/.env && systemctl restart posting")
    box.run(READY)
