"""Many large pictures at once: the process stays small, and others are answered meanwhile."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import Event

import pictures
import pytest
import requests
from live.clients import sign_in
from PIL import Image

MIB = 2**20
MOST_MEMORY = 600 * MIB
SIDE = 5000  # 25 megapixels


@pytest.fixture(scope="module")
def large_pictures():
    """One of each format, of as many pixels as are taken and at most 5 MiB."""
    noise = Image.frombytes("RGB", (250, 250), os.urandom(3 * 250 * 250))
    photograph = noise.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    drawing = pictures.scene("RGBA", (SIDE, SIDE))
    return [
        pictures.encoded(photograph, "JPEG", quality=80),
        pictures.encoded(photograph, "WEBP", quality=80, method=0),
        pictures.encoded(drawing, "WEBP", lossless=True, method=0),
        pictures.encoded(drawing, "PNG"),
        pictures.encoded(drawing.convert("P"), "GIF"),
    ]


def peak_memory(server):
    """Return the most memory that the worker ever held, in bytes."""
    master = server.process.pid
    [worker] = Path(f"/proc/{master}/task/{master}/children").read_text().split()
    status = Path(f"/proc/{worker}/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak) * 1024


def test_twenty_uploads_at_once_leave_room_for_others(serve, large_pictures, figure):
    server = serve(WEB_CONCURRENCY="1")
    ada = sign_in(server.url, "ada")
    idle = peak_memory(server)
    finished = Event()

    def send(path, **body):
        # On a connection of its own: one that idles is closed after a while, perhaps just now.
        return requests.post(server.url + path, cookies=ada.cookies, timeout=60, **body)

    def upload(number):
        """Add a picture to a post, when there is room for it."""
        body = {"title": "x", "content": "x"}
        post = send("/posts", json=body).json()["id"]
        waited = 0
        while True:
            files = {"file": large_pictures[number % len(large_pictures)]}
            answer = send(f"/posts/{post}/images", files=files)
            if answer.status_code != 503:
                return answer.status_code, waited
            waited += 1
            time.sleep(int(answer.headers["Retry-After"]))

    def read():
        """Read all the while; return how long each time took, in seconds."""
        taken = []
        with requests.Session() as reader:
            while not finished.is_set():
                started = time.perf_counter()
                answer = reader.get(f"{server.url}/posts", timeout=20)
                assert answer.status_code == 200, answer.text
                taken.append(time.perf_counter() - started)
        return taken

    with ThreadPoolExecutor(21) as pool:
        reading = pool.submit(read)
        started = time.perf_counter()
        try:
            uploads = list(pool.map(upload, range(20)))
        finally:
            finished.set()
        lasted = time.perf_counter() - started
    taken = sorted(reading.result())
    peak = peak_memory(server)
    waits = sum(waited for _, waited in uploads)
    typical, slow, slowest = median(taken), taken[len(taken) * 99 // 100], taken[-1]
    figure(
        f"20 pictures of 25 megapixels in {lasted:.1f} s, told to wait {waits} times; "
        f"memory {idle / MIB:.0f} MiB idle, {peak / MIB:.0f} MiB at most; "
        f"{len(taken)} reads meanwhile: median {typical * 1000:.1f} ms, "
        f"99 % {slow * 1000:.0f} ms, longest {slowest * 1000:.0f} ms"
    )
    assert [status for status, _ in uploads] == [201] * 20
    assert peak < MOST_MEMORY
    assert len(taken) > lasted * 2
