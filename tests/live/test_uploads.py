"""Uploads of large and hostile images: workers stay small and alive, and serve other requests."""

import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Event

import requests
from PIL import Image

from tests.helpers import hostile, pictures
from tests.live.clients import scaled, sign_in
from tests.live.load import wait_until

MIB = 2**20
MAX_MEMORY = 120 * MIB
MAX_MEMORY_OF_LARGE = 160 * MIB  # eight uploads of 5 MiB, and the copies of the Postgres driver
SIDE = 5000  # 25 megapixels


def large_images():
    """Return an image of each format with the maximum number of pixels and at most 5 MiB."""
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


def hostile_images():
    """Return files that attack decoders, by name."""
    return {
        "profile in a JPEG": hostile.jpeg_with_profile(hostile.expensive_profile(8000)),
        "profile in a PNG": hostile.png_with_profile(hostile.expensive_profile(100_000)),
        "other profile": hostile.png_with_profile(hostile.expensive_profile(100_000, b"A2B0")),
        "thin PNG": hostile.thin_png(25_000_000),
        "thin APNG": hostile.thin_apng(9_000_000),
        "long APNG": hostile.thin_apng(16_384),
        "scans": hostile.many_scans(490),
        "huge PNG": pictures.png_bomb(5000, 5000),
        "huge GIF": pictures.gif_bomb(65_535, 65_535),
        "growing GIF": pictures.growing_gif(5000),
    }


def peak_memory(pid):
    """Return the peak memory of a process in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak) * 1024


def workers(server, count):
    """Wait until all workers have started; return their process ids."""
    master = server.process.pid
    children = Path(f"/proc/{master}/task/{master}/children")
    wait_until(lambda: len(children.read_text().split()) == count)
    return [int(child) for child in children.read_text().split()]


class Uploader:
    """A client that adds images to its own posts, with a new connection for each request."""

    def __init__(self, server, name):
        self.url = server.url
        self.cookies = sign_in(server.url, name).cookies
        self.post = None

    def _send(self, path, **body):
        return requests.post(self.url + path, cookies=self.cookies, timeout=60, **body)

    def upload(self, data):
        """Add an image to a new post; return the response."""
        if self.post is None:
            self.post = self._send("/posts", json={"title": "x", "content": "x"}).json()["id"]
        response = self._send(f"/posts/{self.post}/images", files={"file": data})
        if response.status_code == 201:
            self.post = None
        return response


def read(server, reader):
    """Return the seconds that a read takes."""
    started = time.perf_counter()
    response = reader.get(f"{server.url}/posts", timeout=20)
    assert response.status_code == 200, response.text
    return time.perf_counter() - started


@contextmanager
def reading(server):
    """Read continuously; yield the list of response times in seconds."""
    seconds, finished = [], Event()

    def read_on():
        with requests.Session() as reader:
            while not finished.is_set():
                seconds.append(read(server, reader))
                time.sleep(0.002)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(read_on)
        try:
            yield seconds
        finally:
            finished.set()
        running.result()


def summary(seconds):
    seconds = sorted(seconds)
    typical, slow, slowest = (
        1000 * seconds[index] for index in (len(seconds) // 2, -len(seconds) // 100, -1)
    )
    return (
        f"{len(seconds):,} reads at the same time: median {typical:.1f} ms, 99 % {slow:.0f} ms, "
        f"maximum {slowest:.0f} ms"
    )


def test_twenty_concurrent_large_images_do_not_block_readers(serve, figure):
    server = serve(WEB_CONCURRENCY="1")
    [worker] = workers(server, 1)
    idle, images = peak_memory(worker), large_images()

    def upload(number):
        uploader, retries = Uploader(server, f"user-{number}"), 0
        while (response := uploader.upload(images[number % len(images)])).status_code == 503:
            retries += 1
            time.sleep(int(response.headers["Retry-After"]))
        return response.status_code, retries

    with reading(server) as seconds, ThreadPoolExecutor(20) as pool:
        started = time.perf_counter()
        uploads = list(pool.map(upload, range(20)))
        duration = time.perf_counter() - started
    peak, retry_count = peak_memory(worker), sum(retries for _, retries in uploads)
    figure(
        f"20 images of 25 megapixels in {duration:.1f} s, {retry_count} times 503; "
        f"memory {idle / MIB:.0f} MiB idle, {peak / MIB:.0f} MiB at most; {summary(seconds)}"
    )
    assert [status for status, _ in uploads] == [201] * 20
    assert workers(server, 1) == [worker]
    assert peak < MAX_MEMORY_OF_LARGE
    assert len(seconds) > duration * 2


def test_an_ordinary_image_is_fast(serve, figure):
    uploader = Uploader(serve(WEB_CONCURRENCY="1"), "ada")
    photograph = pictures.encoded(pictures.scene(size=(1600, 1200)), "JPEG", quality=85)
    seconds = []
    for _ in range(scaled(5, 50)):
        response = uploader.upload(photograph)
        assert response.status_code == 201
        seconds.append(response.elapsed.total_seconds())
    figure(
        f"a JPEG of 1600 by 1200 pixels in {median(seconds):.2f} s, {max(seconds):.2f} s at most"
    )


def test_a_member_who_uploads_without_pause_does_not_keep_others_from_it(serve, figure):
    server = serve(WEB_CONCURRENCY="1")
    slow, ordinary = large_images()[0], pictures.png()
    attackers = [Uploader(server, "eve") for _ in range(8)]
    ada, finished, refusals, answers = Uploader(server, "ada"), Event(), Counter(), []

    def attack(uploader):
        while not finished.is_set():
            response = uploader.upload(slow)
            refusals[response.json().get("code", response.status_code)] += 1

    with ThreadPoolExecutor(len(attackers)) as pool:
        attacks = [pool.submit(attack, uploader) for uploader in attackers]
        wait_until(lambda: refusals)
        try:
            for _ in range(scaled(5, 22)):
                answers.append(ada.upload(ordinary))
        finally:
            finished.set()
        for attack_ended in attacks:
            attack_ended.result()
    slowest = max(answer.elapsed.total_seconds() for answer in answers)
    figure(
        f"{len(answers)} images of one member in {slowest:.1f} s each at most, while another sends "
        f"eight at a time: {dict(refusals)}"
    )
    assert [answer.status_code for answer in answers] == [201] * len(answers)


def test_hostile_images_kill_no_worker(serve, figure):
    """The address space is limited to 1 GiB, as on a small machine."""
    server = serve("prlimit", f"--as={1024 * MIB}", WEB_CONCURRENCY="2")
    before = workers(server, 2)
    rng = random.Random(1)
    valid = [
        *(pictures.encoded(pictures.scene(), form) for form in ("PNG", "JPEG", "WEBP", "GIF")),
        *(pictures.animation(form) for form in ("PNG", "WEBP", "GIF")),
    ]
    broken = [hostile.mutations(data, seed) for seed, data in enumerate(valid)]
    files = list(hostile_images().values())
    files += [next(rng.choice(broken)) for _ in range(scaled(50, 985))]
    files += [hostile.long_animation("WEBP", frames=400)] * scaled(1, 5)
    rng.shuffle(files)
    uploaders = [Uploader(server, f"user-{number}") for number in range(4)]
    answers = Counter()
    with requests.Session() as reader:
        usual = median(read(server, reader) for _ in range(100))

    def send(uploader, own_files):
        for data in own_files:
            answers[uploader.upload(data).status_code] += 1

    with reading(server) as seconds, ThreadPoolExecutor(4) as pool:
        started = time.perf_counter()
        list(pool.map(send, uploaders, [files[number::4] for number in range(4)]))
        duration = time.perf_counter() - started
    peak = max(peak_memory(worker) for worker in before)
    figure(
        f"{len(files):,} hostile images in {duration:.0f} s, {dict(sorted(answers.items()))}; "
        f"workers at {peak / MIB:.0f} MiB at most; {summary(seconds)}"
    )
    assert workers(server, 2) == before
    assert set(answers) <= {201, 422, 503}
    assert answers[422] > len(files) / 4
    assert peak < MAX_MEMORY
    assert median(seconds) < max(scaled(0.2, 0.01), 5 * usual)  # no read waits for an image
