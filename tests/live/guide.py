"""The commands of docs/operating.md, what they need without a network, and requests to the site."""

import json
import re
from typing import Any

from tests.live.box import Box
from tests.live.sites import ROOT

DOCUMENT = (ROOT / "docs" / "operating.md").read_text()
CONTAINERS = "In a container"
BLOCK = re.compile(
    r"^## (?P<section>[^\n]*)$|^```sh\n(?P<script>.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMANDS = (
    *("certbot", "chown", "docker", "flask", "git", "journalctl", "make", "rm", "sed"),
    "systemctl",
)
# The host that the tests use instead of the guide's, and the program for requests.
HOST = "community.example.net"
CURL = f"curl --silent --show-error --insecure --resolve {HOST}:443:127.0.0.1"
SITE = f"https://{HOST}"
READY = f"until {CURL} --fail {SITE}/readyz; do sleep 0.2; done"
CREDENTIALS = """'{"username": "ada", "password": "a long walk by the sea"}'"""
ADA = "--cookie /root/ada"


def sections():
    """Return the commands of each section. Those that need a host get the one of the tests."""
    found: dict[str, list[str]] = {}
    for match in BLOCK.finditer(DOCUMENT):
        if match["section"]:
            found[current := match["section"]] = []
        else:
            found[current].append(match["script"])
    for section, scripts in found.items():
        if "host=example.org\n" in scripts:
            scripts.remove("host=example.org\n")
            found[section] = [f"host={HOST}\n{script}" for script in scripts]
    return {section: scripts for section, scripts in found.items() if scripts}


def inline():
    """Return the commands in the text of each section."""
    texts = re.findall(r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    pattern = rf"`((?:{'|'.join(COMMANDS)}) [^`]*)`"
    prose = {
        section: re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S) for section, text in texts
    }
    return {
        section: [command.replace("\n", " ") for command in re.findall(pattern, text)]
        for section, text in prose.items()
    }


def packages(*names):
    """Return the packages that the commands of some sections install."""
    scripts = "".join(script for name in names for script in sections()[name])
    return {
        package
        for line in re.findall("^apt-get install --yes (.*)$", scripts, re.MULTILINE)
        for package in line.split()
    }


def publish(box: Box) -> None:
    """Put the code where it can be cloned from, and let the host lead to this machine."""
    box.run(
        f"""
        echo 127.0.0.1 {HOST} >> /etc/hosts
        echo 'APT::Get::Upgrade "false";' > /etc/apt/apt.conf.d/no-network
        git config --system --add safe.directory '*'
        git config --system user.name tester
        git config --system user.email tester@example.org
        git config --system url./srv/posting.insteadOf https://git.example.com/posting.git
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


def publish_next_version(box: Box) -> None:
    box.run(
        """
        cd /srv/posting
        git add --all
        git commit --quiet --allow-empty --message 'The next version'
        """
    )


def request_path(box: Box, path: str, *options: str) -> str:
    """Send a request through nginx, and return the body of the response."""
    return box.run(f"{CURL} {SITE}{path} {' '.join(options)}")


def create_post(box: Box, title: str) -> Any:
    """Create a post of Ada, and return it."""
    body = f"""'{{"title": "{title}", "content": "x"}}'"""
    return json.loads(request_path(box, "/posts", "--fail", ADA, "--json", body))


def list_titles(box: Box) -> list[str]:
    """Return the titles of the posts, the newest first."""
    return [post["title"] for post in json.loads(request_path(box, "/posts", "--fail", ADA))]
