"""Checks of the settings that keep accounts safe."""

from urllib.parse import urlsplit

from flask import current_app

from posting.http.proxy import LOOPBACK
from posting.ops.doctor.findings import Findings, failure, ok, warning

LEAST_HASH_COST = 2**14 * 8 * 5  # the least N * r * p of what OWASP's password storage sheet lists


def check_passwords() -> Findings:
    shortest = current_app.config["PASSWORD_MIN"]
    advice = "" if shortest >= 15 else "; 15 is better"
    yield ok(f"Passwords have {shortest} characters or more{advice}")
    chosen = current_app.config["PASSWORD_HASH"]
    n, r, p = map(int, chosen.split(":")[1:])
    if n * r * p >= LEAST_HASH_COST:
        yield ok(f"Passwords are hashed with {chosen}")
    else:
        yield failure(
            f"Passwords are hashed with {chosen}, which makes guessing cheap",
            "Remove POSTING_PASSWORD_HASH, for scrypt:32768:8:3; sign-ins renew the hashes.",
        )


def check_limits() -> Findings:
    wrong = "Nothing limits who guesses passwords"
    if current_app.config["RATE_LIMITS"] == "off":
        yield warning(wrong, "Remove POSTING_RATE_LIMITS.")
    elif current_app.config["LIMIT_SIGNIN"] is None:
        yield warning(wrong, "Remove POSTING_LIMIT_SIGNIN.")
    else:
        yield ok("Guesses of passwords are limited")


def check_public_url() -> Findings:
    url = current_app.config["PUBLIC_URL"]
    if not url:
        yield warning(
            "There is no public URL: any host is answered, and cookies are not Secure",
            "Set POSTING_PUBLIC_URL to what browsers see, such as https://example.org",
        )
    elif url.startswith("http:") and not _is_loopback(url):
        yield warning(
            f"Whoever is on the way to {url} can read passwords and cookies",
            "Serve it by https, and set POSTING_PUBLIC_URL to that.",
        )
    else:
        yield ok(f"The public URL is {url}")


def _is_loopback(url: str) -> bool:
    return urlsplit(url).hostname in LOOPBACK


def check_proxy_hops() -> Findings:
    url, hops = current_app.config["PUBLIC_URL"] or "", current_app.config["PROXY_HOPS"]
    if url.startswith("https:") and not hops:
        yield warning(
            "No proxy is believed: behind one, all clients share its address and its limits",
            "Set POSTING_PROXY_HOPS=1, and let the proxy set X-Forwarded-For and -Proto.",
        )
    elif hops and not url:
        yield warning(
            f"Proxies that are believed: {hops}, whatever host they name",
            "Set POSTING_PUBLIC_URL to what browsers see, such as https://example.org",
        )
    else:
        yield ok(f"Proxies that are believed: {hops}")
