"""Turns marker arguments into the requirements of a test's devices."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pytest

from pytest_device.errors import ConfigError
from pytest_device.options import Options
from pytest_device.plugin.project import complete_arguments
from pytest_device.spec import (
    DURATION_MAX_MINUTES,
    NAME_MAX_LENGTH,
    OMITTED_VALUES,
    Platform,
    SessionType,
    Share,
)

if TYPE_CHECKING:
    from pytest_device.sessions.request import DeviceRequirement
    from pytest_device.settings import Settings

Arguments = Mapping[str, Any]
_Nodes = Mapping[str, type[pytest.Collector]]

CI_RUN_VARIABLES: Final = (
    "GITHUB_RUN_ID",
    "CI_PIPELINE_ID",
    "BUILD_TAG",
    "BUILD_NUMBER",
    "BUILD_ID",
)
"""Variables in which common CI services name the run; the first one that is set is used."""
PLATFORM_ARGUMENT: Final = "device_platform"
"""Argument that parametrizes a test marked for several platforms."""
IDENTIFIER: Final = "device_identifier"
"""The marker's argument, and the argument that parametrizes a test marked for several identifiers."""
NODES: Final[_Nodes] = {
    "package": pytest.Package,
    "module": pytest.Module,
    "class": pytest.Class,
}
"""Nodes whose tests share a fixture or a device, by scope, from the widest to the narrowest."""
SINGLE: Final = ""
"""Device name in a test with one device."""

_SEPARATOR: Final = " · "
"""Separates the parts of a session's name."""
_OF_ROUTE: Final = frozenset({"open_route", "route_params"})
_NO_APP: Final = "00000000-0000-0000-0000-000000000000"
_TEST_MINUTES: Final = 2
"""Minutes that must be left of a shared session for a test whose duration is not known."""


def marks_of(node: pytest.Item) -> list[pytest.Mark]:
    """Return the device markers of a test, closest first: those of its parameter set before its own."""
    if node.get_closest_marker("device") is None:
        return []

    callspec = getattr(node, "callspec", None)
    of_parameters: list[pytest.Mark] = [
        mark for mark in (callspec.marks if callspec else ()) if mark.name == "device"
    ]

    marks: list[pytest.Mark] = []
    for parent in reversed(node.listchain()):
        own = [mark for mark in parent.own_markers if mark.name == "device"]
        if own and isinstance(parent, pytest.Class):
            own = _closest_first(own, parent)
        marks += own

    # pytest lists those of a parameter set among the test's own markers, too. Compared by identity, since a test may
    # have an equal marker of its own.
    listed = {id(mark) for mark in of_parameters}
    return [*of_parameters, *(mark for mark in marks if id(mark) not in listed)]


def _closest_first(marks: list[pytest.Mark], node: pytest.Class) -> list[pytest.Mark]:
    """Return the markers of a class, its own first: pytest lists those of its bases before them."""
    distances: dict[int, int] = {}
    for distance, base in enumerate(cast("type", node.obj).__mro__):
        written = vars(base).get("pytestmark", [])
        # `pytestmark` is a marker or a list of markers.
        of_base = [written] if hasattr(written, "name") else written
        for mark in of_base:
            distances[id(getattr(mark, "mark", mark))] = distance

    return sorted(marks, key=lambda mark: distances.get(id(mark), -1))


def parameters_of(item: pytest.Item) -> Arguments:
    """Return the parameters of a test by name."""
    return getattr(getattr(item, "callspec", None), "params", {})


def arguments_by_name(marks: Sequence[pytest.Mark]) -> dict[str, dict[str, Any]]:
    """Return the marker arguments of each device of a test by device name; closer markers take precedence.

    Markers without a name apply to each device; None counts as omitted. Raises ConfigError.

    >>> of_test = pytest.mark.device("alice", type="appium")
    >>> of_class = pytest.mark.device(platform="ios", type="argent")
    >>> arguments_by_name([of_test.mark, of_class.mark])
    {'alice': {'platform': 'ios', 'type': 'appium'}}
    """
    names = list(dict.fromkeys(_name_of(mark) for mark in reversed(marks)))
    named = [name for name in names if name != SINGLE] or [SINGLE]
    devices: dict[str, dict[str, Any]] = {name: {} for name in named}
    for mark in reversed(marks):
        arguments = {
            key: value for key, value in mark.kwargs.items() if value is not None
        }
        for name in [_name_of(mark)] if mark.args else named:
            devices[name] = _merge(devices[name], arguments)

    return devices


def _merge(outer: Arguments, closer: Arguments) -> dict[str, Any]:
    """Merge the arguments of a closer marker into an outer one's, without those that they exclude."""
    if not outer:
        return dict(closer)

    from pytest_device.sessions.request import SOURCES

    dropped: set[str] = set()
    if any(closer.get(source) for source in SOURCES):
        dropped |= set(SOURCES)
    if closer.get("type") == SessionType.WEB_PREVIEW_ONLY:
        dropped.add("max_idle_time_minutes")

    kept = {name: value for name, value in outer.items() if name not in dropped}
    return kept | dict(closer)


def _name_of(mark: pytest.Mark) -> str:
    match mark.args:
        case ():
            return SINGLE
        case (str(name),) if name.strip() and name not in list(Platform):
            return name
        case _:
            raise ConfigError(
                "device() takes keyword arguments, for example device(platform='android'); in a test with several "
                "devices, a name comes first: device('alice', platform='android')"
            )


def platforms_of(arguments: Arguments, settings: "Settings") -> tuple[str, ...]:
    """Return the platforms of a device from its marker or the settings, valid or not."""
    match arguments.get("platform", settings.platform):
        case str(platform):
            return (platform,)
        case platforms if isinstance(platforms, list | tuple):
            return tuple(dict.fromkeys(map(str, cast("Iterable[object]", platforms))))
        # Sorted, so that all processes agree.
        case platforms if isinstance(platforms, set | frozenset):
            return tuple(sorted(map(str, cast("Iterable[object]", platforms))))
        case other:
            return (str(other),)


class Variant(NamedTuple):
    """A platform and an identifier on it; None leaves the choice of a device to the service."""

    platform: str
    identifier: str | None = None

    @property
    def test_id(self) -> str:
        """The variant in the ID of a test for several platforms."""
        return "-".join(filter(None, self))


def is_matrix(identifiers: object) -> bool:
    """Return whether the value of a marker's ``device_identifier`` lists identifiers."""
    return isinstance(identifiers, list | tuple | set | frozenset | Mapping)


def variants(platforms: Sequence[str], identifiers: object) -> tuple[Variant, ...]:
    """Return what a marker's platforms and identifiers name together, in the marker's order.

    >>> several = variants(["android", "ios"], {"android": ["Pixel 8", "Pixel 6"]})
    >>> [variant.test_id for variant in several]
    ['android-Pixel 8', 'android-Pixel 6', 'ios']

    Arguments:
        platforms: the platforms of the marker or of the settings.
        identifiers: a list for one platform, or a mapping of platforms to an identifier or a list. A platform that the
            mapping lacks has one variant without an identifier.

    Raises:
        ConfigError: the identifiers are anything else, or an empty list.
    """
    if isinstance(identifiers, Mapping):
        by_platform = cast("Mapping[Any, object]", identifiers)
        unknown = [key for key in by_platform if key not in list(Platform)]
        if unknown:
            raise ConfigError(
                f"{IDENTIFIER}={identifiers!r}: {unknown[0]!r} must be android or ios"
            )

        return tuple(
            Variant(platform, identifier)
            for platform in platforms
            for identifier in _listed(by_platform.get(platform), by_platform)
        )

    if len(platforms) > 1:
        example = "{'android': ['Pixel 8', 'Pixel 6'], 'ios': ['iPhone 16']}"
        raise ConfigError(
            f"{IDENTIFIER}={identifiers!r}: a list is for one platform; for several, map each to its own, for example "
            f"{IDENTIFIER}={example}"
        )

    return tuple(
        Variant(platform, identifier)
        for platform in platforms
        for identifier in _listed(identifiers, identifiers)
    )


def _listed(value: object, whole: object) -> tuple[str | None, ...]:
    """Return the identifiers of one platform, each once; ``whole`` is the marker's argument, for messages."""
    if value is None or isinstance(value, str):
        return (value,)

    # Not a set: all pytest-xdist workers have to collect the tests in the same order.
    if not isinstance(value, list | tuple):
        raise ConfigError(
            f"{IDENTIFIER}={whole!r}: {value!r} must be a string or a list of strings"
        )

    names = cast("Sequence[object]", value)
    if not names:
        raise ConfigError(f"{IDENTIFIER}={whole!r}: the list must not be empty")

    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"{IDENTIFIER}={whole!r}: {name!r} must be a simulator name, a UDID or a hardware profile"
            )

    return tuple(dict.fromkeys(cast("Sequence[str]", names)))


class SessionNaming:
    """Parts of a session's name besides the test; ``run`` is the fallback for runs without a CI service's name."""

    def __init__(self, environ: Mapping[str, str], run: str = "") -> None:
        self._run = run
        self._worker = environ.get("PYTEST_XDIST_WORKER", "")
        self._ci_run = next(
            (environ[name] for name in CI_RUN_VARIABLES if environ.get(name)), run
        )
        self.requirements: dict[str, DeviceRequirement] = {}
        """The requirements so far: many tests share them."""

    def distinct(self) -> "DistinctNames":
        """Return what distinguishes the sessions of this process."""
        return DistinctNames(self._worker)

    def holder(self) -> str:
        """Return this process's name as the holder of a session."""
        return f"run {self._run} {self._worker}".strip()

    def session_name(self, item: pytest.Item, share: str) -> str:
        """Return a name whose first 40 characters distinguish sessions: the tests that share it come first."""
        path, _, test = item.nodeid.partition("::")
        match Share(share):
            case Share.RUN:
                sharing = []
            case Share.MODULE:
                sharing = [path]
            case Share.CLASS:
                sharing = [_sharing(item, share).nodeid.partition("::")[2], path]
            case Share.TEST:
                sharing = [test or item.name, path]

        parts = [*sharing, item.config.rootpath.name, self._worker, self._ci_run]
        name = _SEPARATOR.join(filter(None, parts))[:NAME_MAX_LENGTH]

        # File names may contain undecodable bytes.
        return name.encode(errors="replace").decode()


class DistinctNames:
    """Distinguishes the sessions that a process creates under one name: those of tests that share, and retries.

    ``process`` is added to names that lack it, so that no other process of the run uses the same ones.
    """

    def __init__(self, process: str) -> None:
        self._process = process
        self._counts: Counter[str] = Counter()
        self._lock = Lock()  # sessions are also created in the background

    def __call__(self, name: str) -> str:
        """Return the name unchanged for its first session, with a number for later ones."""
        with self._lock:
            self._counts[name] += 1
            number = self._counts[name]

        is_part = not self._process or self._process in name.split(_SEPARATOR)
        suffix = "" if is_part else f"{_SEPARATOR}{self._process}"
        if number > 1:
            suffix += f"{_SEPARATOR}{number}"

        return name[: NAME_MAX_LENGTH - len(suffix)] + suffix


def devices_of(item: pytest.Item, settings: "Settings") -> dict[str, dict[str, Any]]:
    """Return the arguments of each device of a test: those of its markers, with one platform, as modified by hooks.

    Raises ConfigError.
    """
    marks = marks_of(item)
    if not marks and not settings.platform:
        raise ConfigError(
            "requests a device but no platform is set: add @pytest.mark.device(platform=...), or set "
            f"{Options.platform.spellings}"
        )

    devices = arguments_by_name(marks)
    problems: list[str] = []
    for name, arguments in devices.items():
        try:
            platforms = platforms_of(arguments, settings)
            identifiers = arguments.get(IDENTIFIER)
            # First: a list for several platforms is also why the test has no platform.
            possible = (
                variants(platforms, identifiers) if is_matrix(identifiers) else ()
            )
            arguments.update(_one_platform(item, name, platforms))
            _choose_identifier(item, name, arguments, possible)
        except ConfigError as error:
            problems += error.problems

        item.ihook.pytest_device_request(item=item, name=name, arguments=arguments)

    if problems:
        raise ConfigError(*problems)

    return devices


def _one_platform(
    item: pytest.Item, name: str, platforms: Sequence[str]
) -> dict[str, str]:
    """Return the platform argument of a device, that of the test's variant if there are several. Raises ConfigError."""
    chosen = parameters_of(item).get(PLATFORM_ARGUMENT)
    if len(platforms) == 1 and name == SINGLE and chosen not in {None, platforms[0]}:
        raise ConfigError(
            f"platform={platforms[0]!r} of a parameter set conflicts with [{chosen}] of the test's own marker: in a "
            "test for several platforms, a parameter set can't have its own"
        )

    if len(platforms) < 2:  # noqa: PLR2004
        return {"platform": platforms[0]} if platforms else {}

    unknown = [platform for platform in platforms if platform not in list(Platform)]
    if unknown:
        raise ConfigError(
            f"platform={list(platforms)!r}: {unknown[0]!r} must be android or ios"
        )

    if name != SINGLE or chosen is None:
        what = f"a device of several ({name!r})" if name != SINGLE else "this test"
        raise ConfigError(
            f"platform={list(platforms)!r}: {what} can't be parametrized by platform; choose one"
        )

    return {"platform": str(chosen)}


def _choose_identifier(
    item: pytest.Item,
    name: str,
    arguments: dict[str, Any],
    possible: Sequence[Variant],
) -> None:
    """Replace the identifiers that a marker lists by the one that this test runs on; raises ConfigError.

    ``possible`` is empty if the marker lists none.
    """
    marked = arguments.get(IDENTIFIER)
    chosen = parameters_of(item).get(IDENTIFIER)
    if is_matrix(marked) and not possible:
        raise ConfigError(
            f"{IDENTIFIER}={marked!r}: no platform is set: add platform=... to the marker, or set "
            f"{Options.platform.spellings}"
        )

    if not possible:
        is_name = isinstance(marked, str)
        if name == SINGLE and is_name and chosen not in (None, marked):
            raise ConfigError(
                f"{IDENTIFIER}={marked!r} of a parameter set conflicts with [{chosen}] of the test's own marker: in a "
                "test for several identifiers, a parameter set can't have its own"
            )

        return

    platform = arguments.get("platform")
    identifiers = [
        variant.identifier for variant in possible if variant.platform == platform
    ]
    if len(identifiers) == 1:
        chosen = identifiers[0]
    elif name != SINGLE or chosen is None:
        what = f"a device of several ({name!r})" if name else "this test"
        raise ConfigError(
            f"{IDENTIFIER}={marked!r}: {what} can't be parametrized by identifier; choose one"
        )

    del arguments[IDENTIFIER]
    if chosen is not None:
        arguments[IDENTIFIER] = chosen


def variant_of(item: pytest.Item) -> str:
    """Return the platform and the identifier by which a test is parametrized, empty without them."""
    parameters = parameters_of(item)
    values = [parameters.get(name) for name in (PLATFORM_ARGUMENT, IDENTIFIER)]
    return " ".join(str(value) for value in values if value is not None)


def requirement_of(
    item: pytest.Item,
    arguments: Arguments,
    settings: "Settings",
    names: SessionNaming,
    defaults: Arguments | None = None,
) -> "DeviceRequirement":
    """Return the requirement of one of a test's devices.

    Arguments:
        item: the test, which decides what shares its sessions.
        arguments: those of the marker, which take precedence over all others.
        settings: the settings, which fill in what no argument sets.
        names: names sessions, and remembers the requirements that it has named.
        defaults: further arguments, which take precedence over the settings only.

    Raises:
        ConfigError: arguments are invalid; with all mistakes.
    """
    from pytest_device.sessions.request import (
        SHARING,
        DeviceRequirement,
        SessionRequest,
        in_minutes,
    )

    # A hook or a fixture may have set any key.
    argument_names: list[object] = [*arguments, *(defaults or {})]
    unusable = [name for name in argument_names if not isinstance(name, str)]
    if unusable:
        raise ConfigError(
            *(f"{name!r} is not an argument of the marker" for name in unusable)
        )

    complete = in_minutes(arguments)
    sharing: dict[str, Any] = {
        name: complete.pop(name) for name in SHARING if name in complete
    }

    share, problems = _share(sharing, settings)
    complete = _merge(defaults or {}, complete)
    complete = _completed(item, complete, settings, problems)
    sharing_key = _sharing_key(item, share)
    name = names.session_name(item, share)

    # Many tests have equal markers, and checking a request takes far longer than this key.
    key = repr((sharing_key, name, sharing, complete))
    if key in names.requirements and not problems:
        return names.requirements[key]

    attach = _attached(sharing, settings, problems)
    request = None
    try:
        fallback = _from_settings(complete, settings) | {"name": name}
        request = SessionRequest.from_arguments(**(fallback | complete))
    except ConfigError as error:
        problems += error.problems

    if request is None or problems:
        raise ConfigError(*problems)

    if attach:  # equal for all its tests, whatever they request for their own sessions
        request = SessionRequest(
            app_id=request.app_id, platform=request.platform, type=request.type
        )
        return names.requirements.setdefault(
            key, DeviceRequirement(request, Share.RUN, attach=attach)
        )

    own_defaults = [
        name
        for name in OMITTED_VALUES
        if name not in complete and settings.is_default(name)
    ]

    duration = request.max_duration_minutes or DURATION_MAX_MINUTES
    minutes = min(_TEST_MINUTES, duration // 2)

    return names.requirements.setdefault(
        key, DeviceRequirement(request, sharing_key, minutes, own_defaults)
    )


def _completed(
    item: pytest.Item,
    arguments: dict[str, Any],
    settings: "Settings",
    problems: list[str],
) -> dict[str, Any]:
    """Return the arguments with what the app's project adds; append mistakes to ``problems``."""
    # A project completes any request; without one, a route is an error.
    if not settings.app_root and _OF_ROUTE.isdisjoint(arguments):
        return arguments

    try:
        return complete_arguments(item, arguments)
    except ConfigError as error:
        problems += error.problems

    # The other arguments may have mistakes, too.
    return {name: value for name, value in arguments.items() if name not in _OF_ROUTE}


def _attached(sharing: Arguments, settings: "Settings", problems: list[str]) -> str:
    """Return the ID of the session to attach to, empty to create one; append mistakes to ``problems``."""
    session_id = sharing.get("attach", settings.attach)
    if not session_id:
        return ""

    try:
        return str(Options.attach.parse(str(session_id)))
    except ValueError as error:
        problems.append(f"attach={session_id!r} must be {error}")
        return ""


def _share(sharing: Arguments, settings: "Settings") -> tuple[str, list[str]]:
    """Return the scope in which a device is shared, and the mistake if the marker's is unknown."""
    share = sharing.get("share", settings.share)
    if isinstance(share, str) and share in list(Share):
        return str(share), []

    return settings.share, [f"share={share!r} must be one of {', '.join(Share)}"]


def _sharing_key(item: pytest.Item, share: str) -> str:
    """Return the sharing key; as with fixtures, a function outside of a class counts as its own class."""
    if share == Share.RUN:
        return share

    return f"{share} {_sharing(item, share).nodeid}"


def _sharing(item: pytest.Item, share: str) -> pytest.Item | pytest.Collector:
    """Return the node whose tests share a session."""
    if share not in NODES:
        return item

    return item.getparent(NODES[share]) or item


def _from_settings(arguments: Arguments, settings: "Settings") -> dict[str, Any]:
    """Return the arguments from the settings, including the limits that end a lost session."""
    from pytest_device.sessions.request import SOURCES

    fallback: dict[str, Any] = {
        "app_id": settings.app_id or _NO_APP,  # reported separately if missing
        "type": settings.type,
        "device_identifier": settings.identifier,
    }

    if not any(arguments.get(source) for source in SOURCES):
        fallback["build_id"] = settings.build_id
        fallback["application_archive_url"] = settings.application_archive_url

    return {**fallback, **_bounds(fallback | dict(arguments), settings)}


def _bounds(arguments: Arguments, settings: "Settings") -> dict[str, object]:
    """Return the limits; no idle limit where the document forbids one: without a controller, or for 1 minute."""
    longest = arguments.get(
        "max_duration_minutes",
        settings.duration_with(arguments.get("max_idle_time_minutes")),
    )
    idle = settings.idle_within(longest)

    bounds: dict[str, object] = {"max_duration_minutes": longest}
    if arguments["type"] != SessionType.WEB_PREVIEW_ONLY and idle is not None:
        bounds["max_idle_time_minutes"] = idle

    return bounds
