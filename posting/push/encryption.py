"""Encryption of pushes for browsers (RFC 8291 and 8188), and signatures for services (RFC 8292)."""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from http.client import HTTPS_PORT
from secrets import token_bytes
from time import time
from urllib.parse import urlsplit

from cryptography.hazmat.backends import default_backend
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02, VapidException

default_backend()  # loads its modules now: a running service must open no file of another version
CURVE = ec.SECP256R1()
RECORD_SIZE = 4096  # bytes; the text is one record
LAST_RECORD = b"\2"
SIGNATURE_SECONDS = 12 * 3600  # RFC 8292 allows a day


class DeviceError(Exception):
    """The browser has given a key or a URL that cannot be used. The text says why."""


def public_key(private_key: str) -> str:
    """Return the public key of a private one, as browsers take it."""
    point = _point(_vapid(private_key).public_key)
    return urlsafe_b64encode(point).decode().rstrip("=")


def encrypt(
    text: bytes,
    *,
    p256dh: str,
    auth: str,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Encrypt a text of up to 3,993 bytes for a browser with these keys.

    The key of the sender and the salt are new for each text, unless a test names them. Raise
    DeviceError if the key of the browser is not valid.
    """
    point = _decode(p256dh)
    try:
        receiver = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point)
    except ValueError as error:
        raise DeviceError("Its key is not a point of the curve") from error
    sender = sender or ec.generate_private_key(CURVE)
    salt = salt or token_bytes(16)
    sender_point = _point(sender.public_key())
    secret = sender.exchange(ec.ECDH(), receiver)
    key = _derive(secret, _decode(auth), b"WebPush: info\0" + point + sender_point, 32)
    content_key = _derive(key, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(key, salt, b"Content-Encoding: nonce\0", 12)
    sealed = AESGCM(content_key).encrypt(nonce, text + LAST_RECORD, None)
    return salt + struct.pack(">IB", RECORD_SIZE, len(sender_point)) + sender_point + sealed


def sign(private_key: str, endpoint: str, contact: str) -> str:
    """Return the `Authorization` of a request to a push service, by its https URL.

    Raise DeviceError if the URL cannot be signed, such as one with an address of IPv6.
    """
    parts = urlsplit(endpoint)
    port = "" if parts.port in {None, HTTPS_PORT} else f":{parts.port}"
    claims = {
        "aud": f"https://{parts.hostname}{port}",  # the origin of the URL (RFC 6454, section 6.1)
        "exp": int(time()) + SIGNATURE_SECONDS,
        "sub": contact,
    }
    try:
        return str(_vapid(private_key).sign(claims)["Authorization"])
    except VapidException as error:
        raise DeviceError("Its URL cannot be signed") from error


@lru_cache(maxsize=8)
def _vapid(private_key: str) -> Vapid02:
    vapid = Vapid02.from_raw(private_key.encode())
    # Otherwise, it refuses a contact URL with a port, a path, or a name without a dot.
    vapid.conf["no-strict"] = True
    return vapid


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
