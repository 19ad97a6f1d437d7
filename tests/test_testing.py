"""The pytest plugin, in test suites that run in their own pytest process and folder."""

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT

LIGHT = ["-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest"]


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a test suite with Posting installed and warnings as errors."""
    information = pytester.mkdir("installed") / "other_posting-0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: x-posting\nVersion: 0\n")
    setup = (ROOT / "setup.cfg").read_text()
    [entry_point] = [line for line in setup.splitlines() if line.endswith("= posting.testing")]
    (information / "entry_points.txt").write_text(f"[pytest11]\n{entry_point.strip()}\n")
    monkeypatch.setenv("PYTHONPATH", f"{information.parent}{os.pathsep}{ROOT}")
    for name in [*os.environ]:
        if name.startswith(("POSTING_", "PYTEST_XDIST")):
            monkeypatch.delenv(name)

    def run(suite, *arguments, **outcomes):
        pytester.makepyfile(suite)
        result = pytester.runpytest_subprocess("-W", "error", *LIGHT, *arguments)
        result.assert_outcomes(**outcomes)
        return result

    return run


def test_each_test_starts_from_an_empty_database(run):
    suite = """
        import pytest

        @pytest.mark.parametrize("_", range(3))
        def test_posts(posting_sign_in, posting_client, posting_moderator, _):
            assert posting_client.get("/posts").json == []
            ada = posting_sign_in("ada", display_name="Ada")
            assert ada.user["display_name"] == "Ada"
            assert posting_sign_in("ada").user == ada.user
            post = ada.post("/posts", json={"title": "Hello", "content": "World"})
            assert posting_client.get(post.headers["Location"]).json == post.json
            assert posting_client.delete(post.headers["Location"]).status_code == 401
            assert posting_moderator.user["role"] == "moderator"
            assert posting_moderator.delete(post.headers["Location"]).status_code == 204

        def test_an_invalid_name(posting_sign_in):
            with pytest.raises(ValueError, match="3 to 32 characters"):
                posting_sign_in("?")
    """
    run(suite, passed=4)


LIVE = """
    from concurrent.futures import ThreadPoolExecutor

    import pytest
    import requests

    @pytest.fixture
    def api(posting_server):
        return f"{posting_server.url}/posts"

    @pytest.mark.parametrize("_", range(2))
    def test_posts_over_http(api, posting_app, posting_server, posting_sign_in, _):
        assert posting_app is posting_server.app
        assert requests.get(api, timeout=10).json() == []
        cookies = {"session": posting_sign_in("ada").get_cookie("session").value}

        def post(number):
            body = {"title": f"Number {number}", "content": "x"}
            return requests.post(api, json=body, cookies=cookies, timeout=10).status_code

        with ThreadPoolExecutor(8) as pool:
            assert set(pool.map(post, range(24))) == {201}
        titles = {post["title"] for post in requests.get(f"{api}?limit=100", timeout=10).json()}
        assert titles == {f"Number {number}" for number in range(24)}

    def test_without_a_server(posting_client):
        assert posting_client.get("/posts").json == []
"""


def test_a_live_server_shares_its_database_with_the_clients(run):
    run(LIVE, passed=3)


def test_a_named_database(run, pytester, empty_url):
    pytester.makeini(f"[pytest]\nposting_database_url = {empty_url}\n")
    suite = f"""{LIVE}
    from posting.db.engine import db

    def test_database(posting_app):
        with posting_app.app_context():
            url = db.engine.url.render_as_string()
        assert url.partition("//")[2] == "{empty_url.partition("//")[2]}"
    """
    run(suite, passed=4)
    run(suite, passed=4)  # again, on the data of the first run


@pytest.mark.parametrize("name", ["posting.db", "contest.db", "latest.db"])
def test_a_database_that_may_not_be_for_tests_is_refused(run, pytester, tmp_path, name):
    path = tmp_path / name
    pytester.makeini(f"[pytest]\nposting_database_url = sqlite:///{path}\n")
    result = run("def test(posting_client): pass", errors=1)
    result.stdout.fnmatch_lines("*Tests delete all data in their database. Use a database*")
    result.stdout.no_fnmatch_line("*Traceback*")
    assert not path.exists()


def test_environment_variables_have_no_effect(run, monkeypatch):
    monkeypatch.setenv("POSTING_SIGNUP", "closed")
    monkeypatch.setenv("POSTING_PUBLIC_URL", "https://example.org")
    run("def test(posting_sign_in): posting_sign_in('ada').get_cookie('session')", passed=1)


def test_xdist_workers_have_their_own_databases(run, pytester, tmp_path):
    suite = """
        import pytest

        @pytest.mark.parametrize("_", range(12))
        def test_posts(posting_sign_in, posting_client, _):
            assert posting_client.get("/posts").json == []
            posting_sign_in("ada").post("/posts", json={"title": "Hello", "content": "World"})
            assert len(posting_client.get("/posts").json) == 1
    """
    run(suite, "-n", "2", passed=12)
    pytester.makeini(f"[pytest]\nposting_database_url = sqlite:///{tmp_path}/test-{{worker}}.db\n")
    run(suite, "-n", "2", passed=12)
    assert {path.name for path in tmp_path.glob("test-gw?.db")} == {"test-gw0.db", "test-gw1.db"}
    pytester.makeini(f"[pytest]\nposting_database_url = sqlite:///{tmp_path}/test.db\n")
    result = run(suite, "-n", "2", errors=12)
    result.stdout.fnmatch_lines("*must contain {worker}*")


def test_settings_and_the_database_can_be_overridden(run, pytester, tmp_path):
    pytester.makeconftest(f"""
        import pytest

        @pytest.fixture(scope="session")
        def posting_settings():
            return {{"SIGNUP": "closed", "PUBLIC_URL": "https://example.org"}}

        @pytest.fixture(scope="session")
        def posting_database_url():
            return "sqlite:///{tmp_path}/own-test.db"
    """)
    suite = """
        def test_settings(posting_client):
            account = {"username": "ada", "password": "a long walk by the sea"}
            response = posting_client.post("/signup", json=account, base_url="https://example.org")
            assert response.json["detail"] == "Sign-up is closed."
    """
    run(suite, passed=1)
    assert (tmp_path / "own-test.db").exists()


def test_fixture_names_do_not_collide(run, pytester):
    names = (
        "app client sign_in server live_server moderator settings database_url testbed anonymous"
    )
    pytester.makeconftest(
        "import pytest\npytest_plugins = ['posting.testing']\n"  # both installed and listed
        + "".join(f"@pytest.fixture\ndef {name}(): return '{name}'\n" for name in names.split())
    )
    arguments = ", ".join(names.split())
    suite = f"""
        def test_fixtures_of_the_suite({arguments}, posting_client):
            assert [{arguments}] == {names.split()}
            assert posting_client.get("/healthz").status_code == 200

        def test_all_fixtures_have_a_prefix(request):
            plugin = request.config.pluginmanager.get_plugin("posting.testing")
            kind = type(plugin.posting_server)
            fixtures = [name for name, value in vars(plugin).items() if isinstance(value, kind)]
            assert len(fixtures) > 6
            assert {{name.lstrip("_").partition("_")[0] for name in fixtures}} == {{"posting"}}
    """
    run(suite, passed=2)


def test_a_run_without_fixtures_does_not_import_the_package(run):
    suite = """
        import sys

        def test_imports():
            loaded = {name for name in sys.modules if name.partition(".")[0] == "posting"}
            assert loaded == {"posting", "posting.testing"}
    """
    run(suite, passed=1)
    heavy = {"flask", "werkzeug", "sqlalchemy", "marshmallow", "PIL", "posting.factory"}
    imports = f"import sys, posting.testing; sys.exit(bool({heavy!r} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", imports], cwd=ROOT, check=False).returncode == 0


def test_requesting_the_server_too_late_fails(run):
    suite = """
        def test_late(posting_client, request):
            request.getfixturevalue("posting_server")
    """
    result = run(suite, failed=1)
    result.stdout.fnmatch_lines("*Request it as an argument*")
