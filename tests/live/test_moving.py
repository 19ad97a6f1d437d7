"""The script and the commands of docs/moving.md, run in order with the content that it shows."""

import csv
import gzip
import json
import os
import re
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
import requests

from tests.conftest import PASSWORD, POSTGRES
from tests.helpers import ROOT, pictures
from tests.live.load import wait_until

DOCUMENT = (ROOT / "docs" / "moving.md").read_text()
# On this machine there are no users and units of an installation.
STUBS = 'set -e; systemctl() { :; }; runuser() { shift 3; "$@"; }\n'


def blocks(language):
    """Return the blocks of the document in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def forum(tmp_path):
    """A folder with the content and the script of the document, and the image that it names."""
    folder = tmp_path / "forum"
    folder.mkdir()
    [content], [script] = blocks("json"), blocks("python")
    (folder / "forum.json").write_text(content)
    (folder / "convert.py").write_text(script)
    photo = pictures.encoded(pictures.scene(), "JPEG", exif=pictures.exif(orientation=6))
    (folder / "loom.jpg").write_bytes(photo)
    return folder


@pytest.fixture
def run_block(forum, tmp_path, fresh_url):
    """Run commands of the document, with the paths of this test."""
    (data := tmp_path / "data").mkdir()
    (checkout := tmp_path / "checkout").mkdir()
    (tmp_path / "conf.d").mkdir()
    flask = f"{sys.executable} -m flask --app posting"
    nginx = f"nginx -e {tmp_path}/error.log -c {tmp_path}/nginx.conf"

    def run_block(script, **environment):
        for shown, used in (
            ("install -o posting -g posting", "install"),
            ("/root/forum", str(forum)),
            ("/var/lib/posting/posting.db", fresh_url.removeprefix("sqlite:///")),
            ("/var/lib/posting", str(data)),
            ("/opt/posting", str(checkout)),
            (".venv/bin/flask", flask),
            ("/etc/nginx/sites-available/posting", f"{tmp_path}/site.conf"),
            ("/etc/nginx/", f"{tmp_path}/"),
            ("nginx -t", f"{nginx} -t"),
            ("systemctl reload nginx", f"{nginx} -s reload"),
        ):
            script = script.replace(shown, used)
        settings = {"POSTING_DATABASE_URL": fresh_url, "PYTHONPATH": str(ROOT)} | environment
        result = subprocess.run(
            ["bash", "-c", STUBS + script],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run_block


def convert(forum, **changes):
    """Run the script with two posts, of which the second has changes. Return what it did."""
    content = json.loads((forum / "forum.json").read_text())
    content["posts"].append({**content["posts"][0], **changes})
    (forum / "forum.json").write_text("\ufeff" + json.dumps(content), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "convert.py", "forum.json", "forum.jsonl.gz", "addresses.map"],
        cwd=forum,
        env=os.environ | {"TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_address_of_several_posts_leads_to_the_first(forum):
    result = convert(forum, address="/ViewTopic.php?t=17")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Several posts have the address /ViewTopic.php?t=17.")
    [line] = (forum / "addresses.map").read_text().splitlines()
    with gzip.open(forum / "forum.jsonl.gz") as archive:
        lines = map(json.loads, archive)
        ids = [line["row"]["id"] for line in lines if line.get("table") == "posts"]
    assert line == f'"/viewtopic.php?t=17" /p/{ids[0]};'


def test_a_time_without_an_offset_is_an_error(forum):
    result = convert(forum, at="2019-03-02T20:15:00")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        "The time 2019-03-02T20:15:00 has no offset from UTC, such as Z or +01:00.\n"
    )
    assert not (forum / "forum.jsonl.gz").exists()


def test_a_forum_moves_with_its_members_dates_threads_and_images(run_block, forum, start_site):
    convert, import_, start_again, invite, redirect = blocks("sh")
    run_block(convert)
    [show_line] = re.findall("`(zcat .*?)`", DOCUMENT)
    assert json.loads(run_block(f"cd /root/forum; {show_line}".replace("12p", "4p")))["row"][
        "title"
    ]
    output = run_block(import_)
    assert re.search(r"^Image [\w-]{21}: encoded again, without metadata.$", output, re.MULTILINE)
    assert "Imported 2 users, 1 post, 2 comments, 1 image, 1 image data from " in output
    if not POSTGRES:
        run_block(start_again)
        run_block(import_)

    site = start_site()
    client = site.client()
    [post] = client.get(f"{site.url}/posts?expand=content,images").json()
    assert (post["title"], post["content"]) == ("On engines", "They *weave* algebra.")
    assert post["author"]["display_name"] == "Ada Lovelace"
    assert post["created_at"] == "2019-03-02T20:15:00.000Z"
    assert post["last_activity_at"] == "2019-03-02T21:05:00.000Z"
    [image] = post["images"]
    assert (image["media_type"], image["alt"]) == ("image/jpeg", "A loom")
    assert (image["width"], image["height"]) == (32, 48)
    assert b"Exif" not in client.get(image["url"]).content
    first, reply = client.get(f"{site.url}/posts/{post['id']}/comments").json()
    assert (first["author"]["username"], reply["content"]) == ("grace", "Cloth too.")
    assert reply["parent_id"] == first["id"]
    assert "They <em>weave</em> algebra." in client.get(f"{site.url}/p/{post['id']}").text
    assert len(client.get(f"{site.url}/posts?q=weave").json()) == 1

    run_block(invite, POSTING_PUBLIC_URL=site.url)
    links = dict(csv.reader((forum / "links.csv").read_text().splitlines()[1:]))
    assert list(links) == ["ada", "grace"]
    assert (forum / "links.csv").stat().st_mode & 0o077 == 0
    for name, link in links.items():
        assert client.get(link).status_code == 200
        new = {"code": urlsplit(link).fragment, "password": PASSWORD}
        assert client.post(f"{site.url}/password-resets", json=new).status_code == 200
        credentials = {"username": name, "password": PASSWORD}
        user = client.post(f"{site.url}/signin", json=credentials).json()
        assert user["role"] == ("moderator" if name == "ada" else "member")

    config = site.nginx.folder / "site.conf"  # Debian includes conf.d before the sites
    config.write_text(f"include {config.parent}/conf.d/*.conf;\n{config.read_text()}")
    run_block(redirect)
    [shown] = blocks("nginx")
    address = json.loads((forum / "forum.json").read_text())["posts"][0]["address"]
    assert shown.startswith(f'"{address}" /p/')

    def is_redirected():
        try:
            response = client.get(site.url + address, allow_redirects=False)
        except requests.ConnectionError:  # by a worker of nginx that ends with the reload
            return False
        return response.headers.get("Location", "").endswith(f"/p/{post['id']}")

    wait_until(is_redirected)
    assert client.get(site.url + address).status_code == 200
    assert client.get(f"{site.url}/viewtopic.php?t=18").status_code == 404
    assert client.get(f"{site.url}/readyz").status_code == 200
