"""The child process that decodes images: its limits and its failures."""

import json
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import nullcontext

import pytest
from PIL import Image

from posting.images import codec as imaging
from posting.images.codec import BusyError, ImageError
from posting.images.codec import child as codec
from tests.helpers import image_files, pictures

MAX_BYTES = 5 * 2**20
VALID = {
    "media_type": "image/png",
    "width": 1,
    "height": 1,
    "renditions": [{"side": 320, "width": 1, "height": 1, "bytes": 1}],
}


def with_rendition(side=320, **values):
    """Return a header that describes a rendition in another way."""
    [thumbnail] = VALID["renditions"]
    others = [thumbnail] if side != 320 else []
    return VALID | {"renditions": [*others, thumbnail | {"side": side} | values]}


def reencode(data=b"", max_bytes=MAX_BYTES):
    return imaging.reencode(data, max_bytes=max_bytes)


@pytest.fixture
def run_in_codec(monkeypatch):
    """Make the child process set its limits and then run other code."""

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


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "WEBP", "MPO"])
@pytest.mark.parametrize("animated", [False, True])
def test_the_child_process_gives_the_same_result(format, animated):
    """Pillow must import all it needs before the limits forbid it to open files."""
    if format == "MPO":
        data = pictures.encoded(
            pictures.scene(), format, save_all=True, append_images=[pictures.scene()]
        )
    elif animated and format != "JPEG":
        data = pictures.animation(format)
    else:
        exif = {} if format == "GIF" else {"exif": pictures.exif(orientation=6)}
        data = pictures.encoded(pictures.scene("RGB"), format, **exif)
    for max_bytes in (MAX_BYTES, 600):
        try:
            expected = image_files.reencode(data, max_bytes)
        except codec.ImageError as error:
            with pytest.raises(ImageError, match=str(error)):
                reencode(data, max_bytes)
        else:
            assert reencode(data, max_bytes) == expected
            made = imaging.make_renditions(expected.data)
            assert made.thumbnail.width == expected.renditions.thumbnail.width


@pytest.mark.parametrize("profile", [pictures.swapped_profile(), b"no profile"])
def test_the_child_process_converts_colors(profile):
    data = pictures.encoded(pictures.scene(), "PNG", icc_profile=profile)
    assert reencode(data) == image_files.reencode(data)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_the_child_process_converts_all_modes(mode):
    gray = pictures.encoded(Image.new(mode, (8, 8), 1), "PNG", icc_profile=pictures.rgb_profile(1))
    assert reencode(gray) == image_files.reencode(gray)
    gamma = pictures.png_chunk(b"gAMA", (100_000).to_bytes(4, "big"))
    plain = pictures.encoded(Image.new(mode, (8, 8), 1), "PNG")
    data = plain[:33] + gamma + plain[33:]
    assert reencode(data) == image_files.reencode(data)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_the_child_process_makes_thumbnails_of_all_modes(mode):
    data = pictures.encoded(Image.new(mode, (400, 300)), "PNG")
    assert imaging.make_renditions(data) == image_files.reencode(data).renditions


def test_the_reason_of_a_refusal_is_passed_on():
    with pytest.raises(ImageError, match="Must be a PNG, JPEG, WebP or GIF image"):
        reencode(b"x")


class TestLimits:
    def test_cpu_time(self, run_in_codec, monkeypatch):
        monkeypatch.setattr(imaging, "MAX_SECONDS", 300)  # more than the other limit needs
        run_in_codec("while True: pass", BASE_CPU_SECONDS=1)
        with pytest.raises(ImageError, match="takes too long"):
            reencode()

    @pytest.mark.parametrize(
        ("size", "frames", "seconds"),
        [((48, 32), 1, 5), ((1000, 1000), 10, 9), ((5000, 5000), 1, 15), ((3000, 3000), 4, 15)],
    )
    def test_cpu_time_by_pixels(self, run_in_codec, size, frames, seconds):
        run_in_codec(f"""
            import json, resource, types
            image = types.SimpleNamespace(width={size[0]}, height={size[1]}, n_frames={frames})
            codec["_raise_cpu_limit"](image)
            print(json.dumps({{"error": str(resource.getrlimit(resource.RLIMIT_CPU)[0])}}))
        """)
        with pytest.raises(ImageError, match=f"^{seconds}$"):
            reencode()

    def test_memory(self, run_in_codec):
        run_in_codec("""
            try:
                print(len(bytearray(codec["MAX_MEMORY"])))
            except MemoryError:
                print('{"error": "refused"}')
        """)
        with pytest.raises(ImageError, match="refused"):
            reencode()

    def test_memory_in_the_codec(self, run_in_codec):
        run_in_codec('codec["main"]()', MAX_MEMORY=120 * 2**20)
        large = pictures.encoded(pictures.scene("RGB", (5000, 5000)), "PNG")
        with pytest.raises(ImageError, match="Cannot be decoded"):
            reencode(large)

    @pytest.mark.parametrize(
        "action", ["open('/etc/hostname')", "socket.socket()", "os.pipe()", "open('/tmp/x', 'w')"]
    )
    def test_files_and_sockets(self, run_in_codec, action):
        run_in_codec(f"""
            try:
                {action}
            except OSError:
                print('{{"error": "refused"}}')
        """)
        with pytest.raises(ImageError, match="refused"):
            reencode()

    def test_other_processes(self, run_in_codec):
        run_in_codec("""
            if os.getuid() == 0:  # the limit does not apply to root
                os.setuid(65534)
            try:
                os.fork()
            except OSError:
                print('{"error": "refused"}')
        """)
        with pytest.raises(ImageError, match="refused"):
            reencode()

    def test_wall_time(self, run_in_codec, monkeypatch):
        monkeypatch.setattr(imaging, "MAX_SECONDS", 0.5)
        run_in_codec("import time; time.sleep(60)")
        started = time.monotonic()
        with pytest.raises(BusyError):
            reencode()
        assert time.monotonic() - started < 10

    def test_output_size(self, run_in_codec):
        run_in_codec("while True: sys.stdout.write('x' * 10**6)")
        with pytest.raises(BusyError):
            reencode()

    def test_environment_and_files_are_not_inherited(self, run_in_codec, monkeypatch):
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
    def test_a_crash_is_an_image_error(self, run_in_codec, code):
        run_in_codec(code)
        with pytest.raises(ImageError, match="damaged"):
            reencode(b"x" * 2**20)

    @pytest.mark.parametrize("code", ["os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 15)"])
    def test_a_killed_codec_is_a_busy_error(self, run_in_codec, code):
        """The kernel kills it when the machine is out of memory."""
        run_in_codec(code)
        with pytest.raises(BusyError):
            reencode()

    @pytest.mark.parametrize("code", ["sys.exit(1)", "raise ValueError('no Pillow here')"])
    def test_a_failing_codec_is_a_busy_error(self, run_in_codec, caplog, code):
        run_in_codec(code)
        with pytest.raises(BusyError):
            reencode(b"x" * 2**20)
        assert "failed with status 1" in caplog.text
        assert ("no Pillow here" in caplog.text) == ("Pillow" in code)

    @pytest.mark.parametrize(
        "output",
        [
            "",
            "x",
            "[]",
            "{}",
            '{"media_type": "text/html", "width": 1, "height": 1}',
            '{"media_type": "image/png", "width": 1, "height": 1}',
            VALID | {"renditions": 1},
            VALID | {"renditions": [1]},
            VALID | {"renditions": []},
            VALID | {"media_type": "text/html"},
            VALID | {"width": 0},
            VALID | {"width": "x"},
            VALID | {"color": "red"},
            with_rendition(width=0),
            with_rendition(height=321),
            with_rendition(height="x"),
            with_rendition(bytes=0),
            with_rendition(bytes=-1),
            with_rendition(bytes=4),
            with_rendition(side=640, width=641),
            with_rendition(side=640, bytes=4),
            with_rendition(side=1000),
            with_rendition(width=float("nan")),
            with_rendition(height=0.5),
            with_rendition(width=True),
            VALID | {"renditions": VALID["renditions"] * 2},
            VALID | {"height": 1.5},
            with_rendition(side="640"),
            with_rendition(side=[640]),
        ],
        ids=str,
    )
    def test_invalid_output_is_a_busy_error(self, run_in_codec, output):
        header = output if isinstance(output, str) else json.dumps(output)
        run_in_codec(f"print({header!r}); print('xx', end='')")
        with pytest.raises(BusyError):
            reencode()

    def test_valid_output_is_accepted(self, run_in_codec):
        run_in_codec(f"print({json.dumps(VALID)!r}); print('xx', end='')")
        assert (reencode().renditions.thumbnail.data, reencode().data) == (b"x", b"x")

    @pytest.mark.parametrize(("side", "limit"), imaging.LIMITS.items())
    @pytest.mark.parametrize("excess", [0, 1])
    def test_a_rendition_that_is_too_large_is_a_busy_error(self, run_in_codec, side, limit, excess):
        header = with_rendition(side=side, bytes=limit + excess)
        run_in_codec(f"print({json.dumps(header)!r}); print('x' * {limit + 2}, end='')")
        with pytest.raises(BusyError) if excess else nullcontext():
            reencode()

    def test_a_process_without_a_deadline_is_killed(self, monkeypatch):
        """The deadline is lost if no thread can be started."""
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

    def test_a_codec_that_does_not_start_is_a_busy_error(self, monkeypatch):
        monkeypatch.setattr(imaging, "COMMAND", ("/does/not/exist",))
        with pytest.raises(BusyError):
            reencode()

    def test_failures_leave_the_queue_empty(self, run_in_codec, monkeypatch):
        run_in_codec("os.abort()")
        for _ in range(imaging.MAX_UPLOADS + 1):
            with pytest.raises(ImageError):
                reencode()
        monkeypatch.undo()
        assert reencode(pictures.png()).media_type == "image/png"


def test_the_wait_for_the_decoder_is_limited(monkeypatch):
    monkeypatch.setattr(imaging, "MAX_WAIT_SECONDS", 0.1)
    with imaging._decoder, pytest.raises(BusyError):
        reencode(pictures.png())
    assert reencode(pictures.png()).width == 48


def test_one_image_is_decoded_at_a_time(run_in_codec):
    run_in_codec('import time; time.sleep(0.3); print(\'{"error": "done"}\')')

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
