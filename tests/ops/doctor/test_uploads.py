"""Space for uploads, and what nginx accepts and caches."""

import re

import pytest

from posting.ops.doctor import installation
from posting.ops.doctor.findings import ok
from tests.helpers import ROOT
from tests.helpers.doctor import GOOD, MIB, examine, only_problem, problems


def test_little_space_for_uploads_is_found(healthy, machine):
    machine(99 * MIB)
    assert any("little space for uploads" in message for _, message in problems(healthy))


@pytest.fixture
def site():
    """Write the shipped site with another body limit."""
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    folder = installation.NGINX / "sites-enabled"
    folder.mkdir(parents=True)
    (installation.NGINX / "nginx.conf").write_text("http { client_max_body_size 12m; }")

    def write(limit, text=shipped):
        text, count = re.subn(r"client_max_body_size \d+m;", limit, text)
        assert count
        (folder / "posting").write_text(text)

    return write


@pytest.mark.parametrize("limit", ["client_max_body_size 11m;", "client_max_body_size 1G;", ""])
def test_a_sufficient_limit_is_ok(healthy, site, limit):
    site(limit)
    assert problems(healthy) == []
    assert ok("nginx accepts forms of 11,534,336 bytes") in examine(healthy)


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ("client_max_body_size 6m;", "6,291,456"),
        ("client_max_body_size 9000K ;", "9,216,000"),
        ("# client_max_body_size 90m;", "12,582,912"),
    ],
)
def test_a_limit_below_that_of_the_service_is_a_warning(make_app, site, limit, found):
    site(limit)
    app = make_app(**GOOD, MAX_FILE_BYTES=20 * MIB)
    message = f"nginx rejects bodies over {found} bytes, but forms may have 22,020,096"
    fix = only_problem(app, "warning", message)
    assert fix.startswith(f"Set client_max_body_size 21m; in {installation.NGINX}/sites-enabled")


def test_other_sites_are_ignored(make_app, site):
    site("", "server { client_max_body_size 1m; proxy_pass http://other; }")
    assert problems(make_app(**GOOD, MAX_FILE_BYTES=20 * MIB)) == []


def test_other_servers_in_the_same_file_are_ignored(healthy, site):
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    other = "server { client_max_body_size 1k; location / { proxy_pass http://other; } }\n"
    site("client_max_body_size 11m;", other + shipped + other)
    assert problems(healthy) == []


def test_the_name_of_the_upstream_is_read_from_the_file(make_app, site):
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    renamed = shipped.replace("upstream posting ", "upstream community ")
    site("", renamed.replace("http://posting;", "http://community;"))
    app = make_app(**GOOD, MAX_FILE_BYTES=20 * MIB)
    only_problem(app, "warning", "nginx rejects bodies over 12,582,912 bytes")


def test_a_site_that_cannot_be_read_is_ignored(healthy, site):
    site("")
    (installation.NGINX / "sites-enabled" / "away").symlink_to("/nowhere/at/all")
    assert problems(healthy) == []


FORMER = "proxy_no_cache $is_args;"  # of images, in a former version of the file
OWN = (
    "server { client_max_body_size 12m; "
    "location / { proxy_cache all; proxy_pass http://posting; } }"
)


@pytest.mark.parametrize("text", [None, OWN])
def test_nginx_that_caches_nothing_private_is_ok(make_app, site, text):
    site("client_max_body_size 11m;", *filter(None, [text]))
    app = make_app(**GOOD, READING="members")
    assert problems(app) == []
    assert ok("nginx caches nothing that only members may read") in examine(app)


@pytest.mark.parametrize("rule", [FORMER, ""])
def test_nginx_that_caches_what_only_members_may_read_is_a_failure(make_app, site, rule):
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    site("client_max_body_size 11m;", re.sub("proxy_no_cache [^;]*;", rule, shipped))
    assert problems(make_app(**GOOD)) == []
    app = make_app(**GOOD, READING="members")
    message = "nginx caches images that only members may read, and sends them to everyone"
    assert "deploy/nginx.conf" in only_problem(app, "failure", message)
