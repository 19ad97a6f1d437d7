"""Checks of the settings that protect accounts."""

from urllib.parse import urlsplit

from flask import current_app

from posting.ops.doctor.findings import Findings, failure, ok, warning
from posting.web.middleware.proxy import LOOPBACK

MIN_HASH_COST = 2**14 * 8 * 5  # the lowest N * r * p on OWASP's password storage cheat sheet
SET_URL = "Set POSTING_PUBLIC_URL to the URL that browsers use, such as https://example.org"


def check() -> Findings:
    config = current_app.config

    shortest = config["PASSWORD_MIN"]
    advice = "" if shortest >= 15 else "; 15 are recommended"
    yield ok(f"Passwords need at least {shortest} characters{advice}")
    scrypt = config["PASSWORD_HASH"]
    n, r, p = map(int, scrypt.split(":")[1:])
    if n * r * p >= MIN_HASH_COST:
        yield ok(f"Passwords are hashed with {scrypt}")
    else:
        yield failure(
            f"Passwords are hashed with {scrypt}, which makes guessing cheap",
            "Remove POSTING_PASSWORD_HASH to use scrypt:32768:8:3; sign-ins renew the hashes.",
        )

    if not config["RATE_LIMITS"]:
        yield warning("Password guesses are not limited", "Remove POSTING_RATE_LIMITS.")
    elif config["LIMIT_SIGNIN"] is None:
        yield warning("Password guesses are not limited", "Remove POSTING_LIMIT_SIGNIN.")
    else:
        yield ok("Password guesses are limited")

    url, hops = config["PUBLIC_URL"] or "", config["PROXY_HOPS"]
    if not url:
        message = "There is no public URL: any Host is accepted, and cookies are not Secure"
        yield warning(message, SET_URL)
    elif url.startswith("http:") and urlsplit(url).hostname not in LOOPBACK:
        yield warning(
            f"Passwords and cookies sent to {url} can be read on the network",
            "Serve it with HTTPS, and set POSTING_PUBLIC_URL to that URL.",
        )
    else:
        yield ok(f"The public URL is {url}")

    if url.startswith("https:") and not hops:
        yield warning(
            "No proxy is trusted: behind one, all clients share its address and its rate limits",
            "Set POSTING_PROXY_HOPS=1, and X-Forwarded-For and X-Forwarded-Proto in the proxy.",
        )
    elif hops and not url:
        yield warning(f"Trusted proxies: {hops}, with any Host that they forward", SET_URL)
    else:
        yield ok(f"Trusted proxies: {hops}")
