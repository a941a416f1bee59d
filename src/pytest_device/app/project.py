"""The app under test: its merged configuration, package, environment and routes."""

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_device.app.document import (
    Document,
    Json,
    Object,
    Position,
    at,
    first,
    object_at,
    text_at,
)
from pytest_device.app.dynamic import Evaluation
from pytest_device.app.env import EnvResult, load_env
from pytest_device.app.keys import typed_config
from pytest_device.app.package import (
    PackageConfig,
    read_package,
    with_defaults,
)
from pytest_device.app.routes.scan import Routes
from pytest_device.app.secret_patterns import is_secret, named_texts, secret_trails
from pytest_device.app.sections import NEWEST_SDK, AppConfig, sdk_major
from pytest_device.app.vendor import VendorProfile, profile_of
from pytest_device.errors import ConfigError, ProjectError
from pytest_device.redact import named_secrets
from pytest_device.secret_registry import SECRETS
from pytest_device.spec import VENDOR

Dynamic: TypeAlias = Literal["auto", "never"]

STATIC_FILES: Final = ("app.config.json", "app.json")
DYNAMIC_FILES: Final = ("app.config.ts", "app.config.js")
APP_DIRECTORIES: Final = ("app", "src/app")
"""As above, the first one that exists counts."""
PRIVATE: Final = (("_internal",), ("hooks",), ("ios", "config"), ("android", "config"))
"""Keys left out of the public configuration, together with the code signing settings in `_SIGNING`."""
_SIGNING: Final = (
    ("updates", "codeSigningCertificate"),
    ("updates", "codeSigningMetadata"),
)
_OVERRIDDEN: Final = (
    "backgroundColor",
    "icon",
    "userInterfaceStyle",
    "version",
    "runtimeVersion",
)
"""Keys that the section of a platform overrides."""


@dataclass(frozen=True)
class Project:
    """A loaded project; ``config`` is the merged configuration, before platform overrides."""

    root: Path
    vendor: VendorProfile
    config: Object = field(repr=False)
    package: PackageConfig = field(repr=False)
    env: EnvResult = field(repr=False)
    static: Document | None = field(default=None, repr=False)
    dynamic_path: Path | None = None
    dynamic_kind: str | None = None
    unused_static: bool = False
    """Whether the dynamic configuration ignores the static one."""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on loading the project, such as whether its code was run."""
    unread: ProjectError | None = None
    """Why the dynamic configuration, whose values are missing, could not be read."""

    @property
    def static_path(self) -> Path | None:
        return self.static.path if self.static else None

    def to_dict(self, public: bool = False) -> Object:  # noqa: FBT001, FBT002  # the established name for what ships
        """Return the configuration; ``public`` drops the keys that must not ship with the app."""
        # A test may change it, and shares the project with others.
        copy = deepcopy(self.config)
        if public:
            for *section, key in (*PRIVATE, *_SIGNING):
                object_at(copy, *section).pop(key, None)

        return copy

    def effective(self, platform: str) -> Object:
        """Return the configuration for a platform: overrides applied, schemes merged. Raises ConfigError."""
        if platform not in ("ios", "android", "web"):
            raise ConfigError(f"platform {platform!r} must be ios, android or web")

        config = self.to_dict()
        section = object_at(config, platform)
        for key in _OVERRIDDEN:
            if section.get(key) is not None:
                config[key] = section[key]

        schemes = self.schemes(platform)
        if schemes:
            config["scheme"] = list(schemes)

        return config

    def app_config(self) -> AppConfig:
        """Return the configuration as typed values. Raises ProjectError listing every invalid key."""
        return typed_config(self.config, self.sdk_major or NEWEST_SDK)

    def schemes(self, platform: str | None = None) -> tuple[str, ...]:
        """Return the declared schemes: shared ones, then those of the platform, or of all platforms."""
        schemes = _texts(at(self.config, "scheme"))
        for section in (platform,) if platform else ("ios", "android"):
            schemes += _texts(at(self.config, section, "scheme"))

        return tuple(dict.fromkeys(schemes))

    @property
    def sdk_version(self) -> str | None:
        return text_at(self.config, "sdkVersion")

    @property
    def sdk_major(self) -> int | None:
        """The major version of the SDK, or None if it is unknown or ``UNVERSIONED``."""
        return sdk_major(self.sdk_version)

    def identifier(self, platform: str) -> str | None:
        """Return the iOS bundle identifier or the Android package name."""
        key = "bundleIdentifier" if platform == "ios" else "package"

        return text_at(self.config, platform, key)

    def position(self, *trail: str | int) -> Position | None:
        """Return the position of a value in the static file, below the vendor's key or at the top level."""
        if self.static is None:
            return None

        return self.static.position(self.vendor.key, *trail) or self.static.position(
            *trail
        )

    def source(self, key: str) -> str:
        """Return the source of a configuration value: its key in a file, or the installed package."""
        trail = key.split(".")
        if self.dynamic_path and self.dynamic_kind:
            return f"{key} in {self.dynamic_path.name}"
        if self.static and self.position(*trail):
            return f"{key} in {self.static.path.name}"

        return f"the installed package {self.vendor.word}"

    def project_id(self) -> str | None:
        """Return the project ID, from the path in the vendor's profile."""
        return text_at(self.config, *self.vendor.project_id_path.split("."))

    def other_project_ids(self) -> Iterator[str]:
        """Yield the paths, other than the profile's, at which the configuration has what may be the project's ID."""
        pending: list[tuple[str, Json]] = [("extra", self.config.get("extra"))]
        while pending:
            path, value = pending.pop()
            if isinstance(value, dict):
                for name, member in value.items():
                    pending.append((f"{path}.{name}", member))
                continue

            is_other = path != self.vendor.project_id_path
            if is_other and path.endswith(".projectId") and is_uuid(str(value)):
                yield path

    @property
    def app_directory(self) -> Path | None:
        """Routes directory, or None."""
        directories = [self.root / name for name in APP_DIRECTORIES]

        return first(path for path in directories if path.is_dir())

    @cached_property
    def routes(self) -> Routes:
        """Routes for all platforms. Raises ProjectError if there is no routes directory."""
        if self.app_directory is None:
            raise ProjectError(
                f"has no directory of routes: {' or '.join(APP_DIRECTORIES)}",
                path=self.root,
            )

        return Routes.scan(self.app_directory, vendor=self.vendor.word)


def load_project(
    root: str | Path,
    *,
    mode: str | None = None,
    vendor: VendorProfile | str = VENDOR,
    dynamic: Dynamic = "auto",
    public: bool = False,
    environ: Mapping[str, str] | None = None,
) -> Project:
    """Load the project in a directory; a dynamic configuration runs the project's code in Node.js.

    Args:
        root: The project's directory, which has ``package.json``.
        mode: Selects the environment files (default: ``NODE_ENV``, else development).
        vendor: The vendor's profile, or only its word.
        dynamic: Whether to evaluate a dynamic configuration. ``"never"`` reads only static files: use it for a
            project that you don't trust.
        public: Whether to drop the keys that must not ship with the app.
        environ: The environment variables (default: those of this process).

    Raises:
        ProjectError: The directory is no project, a file is invalid, or the project's code fails.
        ConfigError: An argument is invalid, or there is no suitable Node.js.
    """
    directory = Path(root).absolute()
    profile = profile_of(vendor)
    if dynamic not in ("auto", "never"):
        raise ConfigError(f"dynamic={dynamic!r} must be 'auto' or 'never'")
    if not directory.is_dir():
        raise ProjectError(
            "is not a directory", code="MODULE_NOT_FOUND", path=directory
        )

    package = read_package(directory, profile)
    static_path = _first_existing(directory, STATIC_FILES)
    dynamic_path = _first_existing(directory, DYNAMIC_FILES)
    static = Document.read(static_path) if static_path else None
    _check_kind(package, static, dynamic_path)

    config: Object = {}
    warnings: list[str] = []
    if static is not None:
        config, warnings = _section(static.object, profile, static.path)
    SECRETS.learn(*named_secrets(named_texts(config)))

    environ = os.environ if environ is None else environ
    mode = mode or environ.get("NODE_ENV") or "development"
    # The project's code sees the mode, too.
    environ = {**environ, "NODE_ENV": mode}
    env = load_env(directory, mode, environ, vendor=profile)

    project = Project(
        directory,
        profile,
        with_defaults(config, package),
        package,
        env,
        static,
        warnings=tuple(warnings),
    )
    if dynamic_path is not None:
        project = _evaluated(project, dynamic_path, dynamic)
    if public:
        project = replace(project, config=project.to_dict(public=True))

    return project


def _first_existing(directory: Path, names: Iterable[str]) -> Path | None:
    """Return the first path that exists, even as a link to nowhere, which reading it reports."""
    paths = [directory / name for name in names]

    return first(path for path in paths if os.path.lexists(path))


def _check_kind(
    package: PackageConfig, static: Document | None, dynamic: Path | None
) -> None:
    """Raise ProjectError unless the directory is that of one of the vendor's apps."""
    name = package.vendor.word
    key = package.vendor.key
    if dynamic is not None or (static is not None and key in static.object):
        return
    if package.mentions(name) or package.installed(name):
        return

    raise ProjectError(
        f"is not the directory of a {name} app: it has neither an app config with the key {key} "
        f"nor the package {name}",
        path=package.root,
    )


def _section(
    root: Object, vendor: VendorProfile, path: Path
) -> tuple[Object, list[str]]:
    """Return the configuration in a file, from the vendor's key or the top level, and warnings about ignored keys."""
    section = root.get(vendor.key)
    if section is None:
        return root, []
    if not isinstance(section, dict):
        raise ProjectError(f'"{vendor.key}" must be an object', path=path)

    ignored = [f'"{key}"' for key in root if key not in (vendor.key, "$schema")]
    if not ignored:
        return section, []

    warning = f'ignored next to the top-level key "{vendor.key}": {", ".join(ignored)}'

    return section, [warning]


def is_uuid(text: str) -> bool:
    """Return whether a text is a UUID in its canonical form."""
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _texts(value: Json) -> list[str]:
    """Return the strings in a value, which is a string or a list."""
    values = value if isinstance(value, list) else [value]

    return [text for text in values if isinstance(text, str)]


def _evaluated(project: Project, path: Path, dynamic: Dynamic) -> Project:
    """Return the project with its dynamic configuration, which receives the static one."""
    if dynamic == "never":
        note = f"did not run {path.name}: its values are missing"
        return replace(project, dynamic_path=path, notes=(note,))

    context: Object = {
        "projectRoot": str(project.root),
        "staticConfigPath": str(project.static_path) if project.static_path else None,
        "packageJsonPath": str(project.package.document.path),
        "config": project.config,
    }
    evaluation = Evaluation(
        path,
        project.vendor.key,
        context,
        project.env.for_programs(),
        _secrets(project),
    )
    evaluated = evaluation.run()

    config, _ = _section(evaluated.config, project.vendor, path)
    SECRETS.learn(*named_secrets(named_texts(config)))

    return replace(
        project,
        config=with_defaults(config, project.package),
        dynamic_path=path,
        dynamic_kind=evaluated.kind,
        unused_static=evaluated.unused,
        notes=(evaluated.note,),
    )


def _secrets(project: Project) -> list[str]:
    """Return the values that an error of the project's code must not show."""
    env = project.env
    from_environment = [
        value for name, value in env.values.items() if is_secret(name, value)
    ]
    from_config = [
        at(project.config, *trail) for trail in secret_trails(project.config, ())
    ]

    return [*env.from_files().values(), *from_environment, *_texts(from_config)]
