"""Many images at once, large or hostile: workers stay small and alive, and readers are answered."""

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
from tests.live.clients import sign_in, sized

MIB = 2**20
MAX_MEMORY = 120 * MIB
MAX_MEMORY_OF_LARGE = 160 * MIB  # eight uploads of 5 MiB, which the driver of Postgres copies
SIDE = 5000  # 25 megapixels


def large_images():
    """Return one of each format, of as many pixels as are accepted and at most 5 MiB."""
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


def memory_of(pid):
    """Return the most memory that a process ever held, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    [peak] = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak) * 1024


def workers(server, count):
    """Return the processes of the workers; gunicorn starts the first and then the others."""
    master = server.process.pid
    for _ in range(200):
        children = Path(f"/proc/{master}/task/{master}/children").read_text().split()
        if len(children) == count:
            return [int(child) for child in children]
        time.sleep(0.05)
    raise AssertionError(f"{len(children)} workers instead of {count}")


class Uploader:
    """A client that adds images to posts of its own, on a connection of its own each time."""

    def __init__(self, server, name):
        self.url = server.url
        self.cookies = sign_in(server.url, name).cookies
        self.post = None

    def _send(self, path, **body):
        return requests.post(self.url + path, cookies=self.cookies, timeout=60, **body)

    def upload(self, data):
        """Return the status of the answer; a post gets ten images at most."""
        if self.post is None:
            self.post = self._send("/posts", json={"title": "x", "content": "x"}).json()["id"]
        answer = self._send(f"/posts/{self.post}/images", files={"file": data})
        if answer.status_code == 201:
            self.post = None
        return answer


@contextmanager
def reading(server):
    """Read all the while; yield the list of how long each time took, in seconds."""
    taken, finished = [], Event()

    def read():
        with requests.Session() as reader:
            while not finished.is_set():
                started = time.perf_counter()
                answer = reader.get(f"{server.url}/posts", timeout=20)
                assert answer.status_code == 200, answer.text
                taken.append(time.perf_counter() - started)
                time.sleep(0.002)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(read)
        try:
            yield taken
        finally:
            finished.set()
        running.result()


def described(taken):
    taken = sorted(taken)
    typical, slow, slowest = (
        1000 * taken[place] for place in (len(taken) // 2, -len(taken) // 100, -1)
    )
    return (
        f"{len(taken):,} reads meanwhile: median {typical:.1f} ms, 99 % {slow:.0f} ms, "
        f"longest {slowest:.0f} ms"
    )


def test_twenty_large_images_at_once_leave_room_for_others(serve, figure):
    server = serve(WEB_CONCURRENCY="1")
    [worker] = workers(server, 1)
    idle, images = memory_of(worker), large_images()

    def upload(number):
        uploader, waited = Uploader(server, f"user-{number}"), 0
        while (answer := uploader.upload(images[number % len(images)])).status_code == 503:
            waited += 1
            time.sleep(int(answer.headers["Retry-After"]))
        return answer.status_code, waited

    with reading(server) as taken, ThreadPoolExecutor(20) as pool:
        started = time.perf_counter()
        uploads = list(pool.map(upload, range(20)))
        lasted = time.perf_counter() - started
    peak, waits = memory_of(worker), sum(waited for _, waited in uploads)
    figure(
        f"20 images of 25 megapixels in {lasted:.1f} s, told to wait {waits} times; "
        f"memory {idle / MIB:.0f} MiB idle, {peak / MIB:.0f} MiB at most; {described(taken)}"
    )
    assert [status for status, _ in uploads] == [201] * 20
    assert workers(server, 1) == [worker]
    assert peak < MAX_MEMORY_OF_LARGE
    assert len(taken) > lasted * 2


def test_an_ordinary_image_is_there_at_once(serve, figure):
    uploader = Uploader(serve(WEB_CONCURRENCY="1"), "ada")
    photograph = pictures.encoded(pictures.scene(size=(1600, 1200)), "JPEG", quality=85)
    taken = []
    for _ in range(sized(5, 50)):
        answer = uploader.upload(photograph)
        assert answer.status_code == 201
        taken.append(answer.elapsed.total_seconds())
    figure(f"a JPEG of 1600 by 1200 pixels in {median(taken):.2f} s, {max(taken):.2f} s at most")


def test_hostile_images_kill_no_worker(serve, figure):
    """With 1 GiB of address space, as on a small machine."""
    server = serve("prlimit", f"--as={1024 * MIB}", WEB_CONCURRENCY="2")
    before = workers(server, 2)
    chance = random.Random(1)
    valid = [
        *(pictures.encoded(pictures.scene(), form) for form in ("PNG", "JPEG", "WEBP", "GIF")),
        *(pictures.animation(form) for form in ("PNG", "WEBP", "GIF")),
    ]
    broken = [hostile.mutations(data, seed) for seed, data in enumerate(valid)]
    files = list(hostile_images().values())
    files += [next(chance.choice(broken)) for _ in range(sized(50, 985))]
    files += [hostile.long_animation("WEBP", frames=400)] * sized(1, 5)
    chance.shuffle(files)
    uploaders = [Uploader(server, f"user-{number}") for number in range(4)]
    answers = Counter()

    def send(uploader, own_files):
        for data in own_files:
            answers[uploader.upload(data).status_code] += 1

    with reading(server) as taken, ThreadPoolExecutor(4) as pool:
        started = time.perf_counter()
        list(pool.map(send, uploaders, [files[number::4] for number in range(4)]))
        lasted = time.perf_counter() - started
    peak = max(memory_of(worker) for worker in before)
    figure(
        f"{len(files):,} hostile images in {lasted:.0f} s, {dict(sorted(answers.items()))}; "
        f"workers at {peak / MIB:.0f} MiB at most; {described(taken)}"
    )
    assert workers(server, 2) == before
    assert set(answers) <= {201, 422, 503}
    assert answers[422] > len(files) / 4
    assert peak < MAX_MEMORY
    assert median(taken) < 0.01
