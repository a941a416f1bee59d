"""Rows: a test ends its process or does something unexpected to it."""

from typing import Final

from tests.faults.acts import KILL, in_test, sends
from tests.faults.row import NOBODY, Row
from tests.faults.suites import suite

_STILL_THERE: Final = """
            with DeviceClient(os.environ["DEVICE_URL"], os.environ["DEVICE_TOKEN"]) as client:
                assert client.get(device_session.id).status == "in-progress"
""".strip()
ROWS: Final = (
    Row(
        "os._exit in a test",
        "Stopped, although Python can't clean up.",
        suite("reached()\nos._exit(3)"),
        reported=NOBODY,
        status=3,
    ),
    Row(
        "os._exit in the teardown of another fixture",
        "The same.",
        suite(
            before="""
            @pytest.fixture
            def theirs(device_session):
                yield
                reached()
                os._exit(3)
            """,
            given=", theirs",
        ),
        reported=NOBODY,
        status=3,
    ),
    Row(
        "a segmentation fault",
        "Stopped.",
        suite("reached()\nctypes.string_at(0)"),
        reported=NOBODY,
        status=-11,
    ),
    Row(
        "an abort of a C library",
        "Stopped.",
        suite("reached()\nos.abort()"),
        reported=NOBODY,
        status=-6,
    ),
    Row(
        "a test replaces its process with another program",
        "Stopped, although a process with the same ID continues.",
        suite("reached()\nos.execv('/bin/sleep', ['sleep', '6'])"),
        reported=NOBODY,
        status=0,
    ),
    Row(
        "sys.exit in a test",
        "A failure like any other.",
        suite("reached()\nsys.exit(3)"),
        status=1,
    ),
    Row(
        "sys.exit in a thread of a test",
        "It only ends the thread.",
        suite(
            "reached()\nthread = threading.Thread(target=sys.exit)\nthread.start()\nthread.join()"
        ),
        status=0,
    ),
    Row(
        "a thread of a test never ends",
        "The session is stopped; the interpreter waits for the thread, the plugin doesn't.",
        suite("reached()\nthreading.Thread(target=time.sleep, args=(4,)).start()"),
    ),
    Row(
        "a thread of a test interrupts the main one",
        "Like Ctrl-C.",
        suite("reached()\nimport _thread\n_thread.interrupt_main()\ntime.sleep(5)"),
        status=2,
    ),
    Row(
        "an exit handler of the suite ends the process",
        "The session is stopped before exit handlers run.",
        suite("reached()", conftest="atexit.register(os._exit, 4)"),
        status=4,
    ),
    Row(
        "a forked child outlives the killed run",
        "Stopped, although the child still holds all open files of the run.",
        suite(
            """
            if os.fork() == 0:
                time.sleep(9)
                os._exit(0)
            hold()
            """
        ),
        when=in_test,
        fault=sends(KILL),
        reported=NOBODY,
        status=-9,
    ),
    Row(
        "a forked child ends",
        "The session belongs to the parent and continues until the test ends.",
        suite(
            """
            from pytest_device import DeviceClient

            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            {still_there}
            """.replace("{still_there}", _STILL_THERE)
        ),
        status=0,
    ),
    Row(
        "a forked child continues into pytest's own shutdown",
        "Two processes now end the run: the session is stopped once or twice.",
        suite("reached()\nos.fork()"),
        reported=r"1 stopped \(confirmed\)",
    ),
    Row(
        "a child of multiprocessing ends",
        "The same, with the exit handlers that such a child runs.",
        suite(
            """
            import multiprocessing
            from pytest_device import DeviceClient

            for way in ("fork", "spawn"):
                child = multiprocessing.get_context(way).Process(target=time.time)
                child.start()
                child.join()
            {still_there}
            """.replace("{still_there}", _STILL_THERE)
        ),
        status=0,
    ),
    Row(
        "a test closes every file that it did not open",
        "Stopped; the run itself may fail in any way.",
        suite("reached()\nos.closerange(3, 256)"),
        reported=NOBODY,
    ),
    Row(
        "a test uses up all file descriptors",
        "Stopped when the test ends.",
        suite(
            """
            import resource
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            reached()
            files = []
            try:
                while True: files.append(open(os.devnull))
            except OSError:
                pass
            os.environ["KEPT_OPEN"] = str(len(files))
            pytest.kept_open = files
            """
        ),
        reported=NOBODY,
    ),
    Row(
        "a test uses up its memory limit",
        "Stopped.",
        suite(
            """
            import resource
            reached()
            used = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**20, used + 2**20))
            kept = []
            while True: kept.append(bytearray(2**16))
            """
        ),
        reported=NOBODY,
    ),
    Row(
        "a test changes the directory, the environment and the standard streams",
        "The plugin doesn't depend on them.",
        suite(
            """
            reached()
            os.chdir("/")
            os.environ.clear()
            sys.stdin = sys.stdout = sys.stderr = None
            """
        ),
        status=0,
    ),
)
