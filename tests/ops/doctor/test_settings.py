"""Settings that do not protect accounts."""

import pytest

from tests.helpers.doctor import GOOD, only_problem, problems


@pytest.mark.parametrize(
    ("settings", "level", "part", "fix"),
    [
        ({"PASSWORD_HASH": "scrypt:32768:8:1"}, "failure", "guessing", "PASSWORD_HASH"),
        ({"RATE_LIMITS": "off"}, "warning", "not limited", "POSTING_RATE_LIMITS"),
        ({"LIMIT_SIGNIN": "off"}, "warning", "not limited", "POSTING_LIMIT_SIGNIN"),
        ({"PUBLIC_URL": "", "PROXY_HOPS": 0}, "warning", "no public URL", "POSTING_PUBLIC_URL"),
        ({"PUBLIC_URL": "http://example.org"}, "warning", "can be read on the network", "HTTPS"),
        ({"PROXY_HOPS": 0}, "warning", "share its address", "POSTING_PROXY_HOPS=1"),
    ],
)
def test_unsafe_settings(make_app, settings, level, part, fix):
    assert fix in only_problem(make_app(**GOOD | settings), level, part)


def test_proxies_without_a_public_url(make_app):
    levels = [level for level, _ in problems(make_app(**GOOD | {"PUBLIC_URL": ""}))]
    assert levels == ["warning", "warning"]


@pytest.mark.parametrize("parameters", ["131072:8:1", "65536:8:2", "16384:8:5", "8192:8:10"])
def test_every_hash_on_the_owasp_list_is_ok(make_app, parameters):
    assert problems(make_app(**GOOD | {"PASSWORD_HASH": f"scrypt:{parameters}"})) == []


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:80"])
def test_http_is_ok_on_loopback(make_app, url):
    assert problems(make_app(**GOOD | {"PUBLIC_URL": url})) == []
