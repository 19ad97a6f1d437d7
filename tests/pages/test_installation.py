"""The site as an app: its manifest, and the script that shows notifications."""


def test_the_manifest_names_the_community(make_app):
    client = make_app(NAME="Elm Street", DESCRIPTION="For neighbours").test_client()
    response = client.get("/manifest.webmanifest", headers={"X-Forwarded-Prefix": "/elm"})
    assert response.content_type == "application/manifest+json"
    manifest = response.json
    assert (manifest["name"], manifest["description"]) == ("Elm Street", "For neighbours")
    assert manifest["start_url"] == manifest["scope"] == "/"
    for icon in manifest["icons"]:
        assert client.get(icon["src"]).content_type.startswith(icon["type"])


def test_below_a_path_the_manifest_has_the_path(make_app):
    client = make_app(PROXY_HOPS="1").test_client()
    headers = {"X-Forwarded-Prefix": "/elm", "X-Forwarded-For": "192.0.2.1"}
    manifest = client.get("/manifest.webmanifest", headers=headers).json
    assert manifest["start_url"] == "/elm/"
    assert manifest["icons"][0]["src"] == "/elm/favicon.svg"


def test_pages_name_the_manifest_and_may_use_it(anonymous):
    response = anonymous.get("/")
    assert '<link rel="manifest" href="/manifest.webmanifest">' in response.text
    policy = response.headers["Content-Security-Policy"]
    assert "manifest-src 'self'" in policy
    assert "worker-src 'self'" in policy


def test_the_worker_is_a_script_above_all_pages(anonymous):
    response = anonymous.get("/worker.js")
    assert response.content_type.startswith("text/javascript")
    assert "immutable" not in response.headers["Cache-Control"]
