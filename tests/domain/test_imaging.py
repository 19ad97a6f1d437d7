"""The process in which images are decoded: what it may use, and what its end means."""

import subprocess
import sys
import textwrap
import threading
import time

import pytest

from posting.domain import imaging
from posting.domain.imaging import BusyError, ImageError, codec
from tests.helpers import pictures

MAX_BYTES = 5 * 2**20


def reencode(data=b"", max_bytes=MAX_BYTES):
    return imaging.reencode(data, max_bytes=max_bytes)


@pytest.fixture
def codec_does(monkeypatch):
    """Let the child process set its limits and then do something else."""

    def replace(code, **constants):
        set_up = f"""
            import os, runpy, socket, sys
            codec = runpy.run_path({codec.__file__!r})
            limits = codec["limit_resources"]
            limits.__globals__.update({constants!r})
            limits()
        """
        script = textwrap.dedent(set_up) + textwrap.dedent(code)
        monkeypatch.setattr(imaging, "COMMAND", (sys.executable, "-I", "-c", script))

    return replace


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "MPO"])
@pytest.mark.parametrize("moving", [False, True])
def test_the_process_does_what_the_codec_does(form, moving):
    """It can open no file once it has its limits, so Pillow must have imported all it needs."""
    if form == "MPO":
        data = pictures.encoded(
            pictures.scene(), form, save_all=True, append_images=[pictures.scene()]
        )
    elif moving and form != "JPEG":
        data = pictures.animation(form)
    else:
        exif = {} if form == "GIF" else {"exif": pictures.exif(orientation=6)}
        data = pictures.encoded(pictures.scene("RGB"), form, **exif)
    for max_bytes in (MAX_BYTES, 600):
        try:
            described, encoded = codec.reencode(data, max_bytes=max_bytes)
        except codec.ImageError as error:
            with pytest.raises(ImageError, match=str(error)):
                reencode(data, max_bytes)
        else:
            expected = imaging.ReencodedImage(data=encoded, **described)
            assert reencode(data, max_bytes) == expected


@pytest.mark.parametrize("profile", [pictures.swapped_profile(), b"no profile"])
def test_it_converts_colors(profile):
    data = pictures.encoded(pictures.scene(), "PNG", icc_profile=profile)
    _, encoded = codec.reencode(data, max_bytes=MAX_BYTES)
    assert reencode(data).data == encoded


def test_the_reason_of_a_refusal_comes_back():
    with pytest.raises(ImageError, match="Must be a PNG, JPEG, WebP or GIF image"):
        reencode(b"x")


class TestLimits:
    def test_cpu_time(self, codec_does):
        codec_does("while True: pass", MAX_CPU_SECONDS=1)
        with pytest.raises(ImageError, match="takes too long"):
            reencode()

    def test_memory(self, codec_does):
        codec_does("""
            try:
                print(len(bytearray(codec["MAX_MEMORY"])))
            except MemoryError:
                print('{"error": "refused"}')
        """)
        with pytest.raises(ImageError, match="refused"):
            reencode()

    def test_memory_that_the_codec_asks_for(self, codec_does):
        codec_does('codec["main"]()', MAX_MEMORY=120 * 2**20)
        large = pictures.encoded(pictures.scene("RGB", (5000, 5000)), "PNG")
        with pytest.raises(ImageError, match="Cannot be decoded"):
            reencode(large)

    @pytest.mark.parametrize(
        "action", ["open('/etc/hostname')", "socket.socket()", "os.pipe()", "open('/tmp/x', 'w')"]
    )
    def test_files_and_sockets(self, codec_does, action):
        codec_does(f"""
            try:
                {action}
            except OSError:
                print('{{"error": "refused"}}')
        """)
        with pytest.raises(ImageError, match="refused"):
            reencode()

    def test_other_processes(self, codec_does):
        codec_does("""
            if os.getuid() == 0:  # whom the limit does not bind
                os.setuid(65534)
            try:
                os.fork()
            except OSError:
                print('{"error": "refused"}')
        """)
        with pytest.raises(ImageError, match="refused"):
            reencode()

    def test_wall_time(self, codec_does, monkeypatch):
        monkeypatch.setattr(imaging, "MAX_SECONDS", 0.5)
        codec_does("import time; time.sleep(60)")
        started = time.monotonic()
        with pytest.raises(BusyError):
            reencode()
        assert time.monotonic() - started < 10

    def test_output(self, codec_does):
        codec_does("while True: sys.stdout.write('x' * 10**6)")
        with pytest.raises(BusyError):
            reencode()

    def test_it_inherits_nothing(self, codec_does, monkeypatch):
        monkeypatch.setenv("POSTING_DATABASE_URL", "postgresql://secret")
        script = """
            import json, os
            for number in range(3, 1000):
                try:
                    os.fstat(number)
                except OSError:
                    continue
                raise SystemExit(1)
            print(json.dumps({"error": " ".join(sorted(os.environ))}))
        """
        command = (sys.executable, "-c", textwrap.dedent(script))
        monkeypatch.setattr(imaging, "COMMAND", command)
        with pytest.raises(ImageError) as refused:
            reencode()
        assert set(str(refused.value).split()) <= {"PYTHONPATH", "LC_CTYPE"}


class TestFailures:
    @pytest.mark.parametrize("code", ["os.kill(os.getpid(), 11)", "os.abort()"])
    def test_a_crash_refuses_the_image(self, codec_does, code):
        codec_does(code)
        with pytest.raises(ImageError, match="damaged"):
            reencode(b"x" * 2**20)

    @pytest.mark.parametrize("code", ["os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 15)"])
    def test_a_kill_asks_to_try_again(self, codec_does, code):
        """As by the kernel, when the machine has no more memory."""
        codec_does(code)
        with pytest.raises(BusyError):
            reencode()

    @pytest.mark.parametrize("code", ["sys.exit(1)", "raise ValueError('no Pillow here')"])
    def test_a_codec_that_fails_is_no_fault_of_the_image(self, codec_does, caplog, code):
        codec_does(code)
        with pytest.raises(BusyError):
            reencode(b"x" * 2**20)
        assert "ended with status 1" in caplog.text
        assert ("no Pillow here" in caplog.text) == ("Pillow" in code)

    @pytest.mark.parametrize(
        "output",
        [
            "",
            "x",
            "[]",
            "{}",
            '{"media_type": "text/html", "width": 1, "height": 1}',
            '{"media_type": "image/png", "width": 0, "height": 1}',
            '{"media_type": "image/png", "width": "x", "height": 1}',
        ],
    )
    def test_output_that_describes_no_image(self, codec_does, output):
        codec_does(f"print({output!r})")
        with pytest.raises(BusyError):
            reencode()

    def test_no_process_is_left_without_a_deadline(self, monkeypatch):
        """When no thread can be started."""
        started = []
        popen = subprocess.Popen
        monkeypatch.setattr(
            subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1]
        )

        def fail(_timer):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Timer, "start", fail)
        with pytest.raises(BusyError):
            reencode()
        assert started[0].returncode is not None

    def test_a_process_that_does_not_start_asks_to_try_again(self, monkeypatch):
        monkeypatch.setattr(imaging, "COMMAND", ("/does/not/exist",))
        with pytest.raises(BusyError):
            reencode()

    def test_every_place_is_free_again(self, codec_does, monkeypatch):
        codec_does("os.abort()")
        for _ in range(imaging.MAX_WAITING + 1):
            with pytest.raises(ImageError):
                reencode()
        monkeypatch.undo()
        assert reencode(pictures.png()).media_type == "image/png"


def test_waiting_for_a_turn_ends(monkeypatch):
    monkeypatch.setattr(imaging, "MAX_WAIT_SECONDS", 0.1)
    with imaging._turn, pytest.raises(BusyError):
        reencode(pictures.png())
    assert reencode(pictures.png()).width == 48


def test_one_image_is_decoded_at_a_time(codec_does):
    codec_does('import time; time.sleep(0.3); print(\'{"error": "done"}\')')

    def send():
        with pytest.raises(ImageError, match="done"):
            reencode()

    started = time.monotonic()
    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - started > 0.9


def test_the_service_never_imports_pillow():
    script = """
        import sys
        from posting import create_app
        app = create_app({"TESTING": True, "DATABASE_URL": "sqlite://"})
        assert app.test_client().get("/openapi.json").status_code == 200
        sys.exit("PIL" in sys.modules)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    assert subprocess.run(command, check=False).returncode == 0
