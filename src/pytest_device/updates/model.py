"""Model of an app's launches with updates, as pure state transitions that tests use as an oracle."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self, TypeAlias, TypeVar

from pytest_device.errors import hides_frames
from pytest_device.updates.loading import asset_reasons, will_load
from pytest_device.updates.settings import DisabledReason, UpdateSettings, problem_of
from pytest_device.updates.values import (
    NOT_SPECIFIED,
    NOTHING,
    Build,
    Checked,
    Cleaned,
    Code,
    Downloaded,
    EmergencyFallback,
    Event,
    Events,
    Launched,
    Mode,
    NotSpecified,
    Offer,
    Operation,
    Reason,
    Rejected,
    Update,
    in_utc,
)

__tracebackhide__ = hides_frames

Headers: TypeAlias = tuple[tuple[str, str], ...]
_Model = TypeVar("_Model", bound="LaunchModel")

_START = datetime.min.replace(tzinfo=UTC)
_NO_OFFER = Offer()


@dataclass(frozen=True, slots=True)
class LaunchModel:
    """State of an installed app; ``build.running`` is its embedded update, ``stored`` holds the downloaded ones.

    Each operation returns the next state and the events.

    >>> settings = UpdateSettings(url="https://u.example")
    >>> embedded = Update("e", created_at="2026-01-01")
    >>> model = LaunchModel(Build("ios", "1.0", settings, embedded, "app"))
    >>> update = Update("u", "1.0", "ios", "2026-02-01", "app", assets=[])
    >>> model, events = model.launch(Offer(update))
    >>> events
    (Downloaded(update_id='u'), Launched(update_id='e', is_embedded=True))
    >>> model.launch()[0].running.id
    'u'
    """

    build: Build
    mode: Mode = Mode.RELEASE
    running: Update | None = None
    """Update that is running, or None before the first launch."""
    stored: tuple[Update, ...] = ()
    failed: frozenset[str] = frozenset()
    """IDs of the updates that crashed on launch; they are never launched again."""
    rolled_back_at: datetime | None = None
    """Time of the last rollback; updates created up to then are not launched."""
    is_update_available: bool = False
    emergency_reason: str | None = None
    storage_error: bool = False
    reload_screen: bool = False
    url_override: str | None = None
    headers_override: Headers | None = field(default=None, repr=False)

    @property
    def settings(self) -> UpdateSettings:
        return self.build.settings or UpdateSettings()

    @property
    def embedded(self) -> Update:
        return self.build.running or NOTHING

    @property
    def is_enabled(self) -> bool:
        return self.disabled_reason is None

    @property
    def disabled_reason(self) -> DisabledReason | None:
        """Why the app only uses its embedded update, or None if it uses others, too."""
        if self.storage_error:
            return DisabledReason.STORAGE_ERROR

        problem = self.settings.disabled_reason or problem_of(self.settings.url)
        if problem:
            return problem
        if not self.settings.enabled:
            return DisabledReason.CONFIGURATION

        return None

    @property
    def url(self) -> str | None:
        """URL of the next check."""
        return self.url_override or self.settings.url

    @property
    def headers(self) -> Mapping[str, object]:
        """Extra headers of the next check."""
        if self.headers_override is not None:
            return dict(self.headers_override)

        return self.settings.request_headers or {}

    @property
    def pending(self) -> Update | None:
        """Update that the next launch or reload uses instead of the running one, or None."""
        if self.running is None:
            return None

        newest = _newest(self)

        return None if newest.id == self.running.id else newest

    def launch(
        self, offer: Offer = _NO_OFFER, *, storage_error: bool = False
    ) -> tuple[Self, Events]:
        """Launch the app; the check at startup receives the offer.

        With ``storage_error``, the app cannot read its stored updates, so that updates are disabled for this launch.
        """
        model = replace(
            self, storage_error=storage_error, running=None, reload_screen=False
        )
        cached = _newest(model)
        policy = self.settings.check_automatically
        if not _is_managed(model) or policy == "NEVER":
            return _started(model, cached)
        if policy != "ON_LOAD":
            return _started(model, cached, (NotSpecified(NOT_SPECIFIED[0]),))

        model, events = _downloaded(model, offer, cached, "launch")
        # A launch that waited too long uses what is there; the download is for the next one ("Configuration properties").
        limit = self.settings.fallback_to_cache_timeout
        is_in_time = limit > 0 and offer.seconds * 1000 <= limit

        return _started(model, _newest(model) if is_in_time else cached, events)

    def check(self, offer: Offer = _NO_OFFER) -> tuple[Self, Events]:
        """Check for an update without downloading it."""
        if reason := _rejection(self, offer):
            return self, (Rejected("check", reason),)

        current = self.running or NOTHING
        reasons = _refusals(self, _manifest(offer.update), current)
        is_new_update = offer.update is not None and not reasons
        is_available = is_new_update or _is_new_roll_back(self, offer, current)
        model = replace(self, is_update_available=is_available)

        return model, (Checked(is_available, reasons),)

    def fetch(self, offer: Offer = _NO_OFFER) -> tuple[Self, Events]:
        """Download the offered update, which is applied at the next launch or reload."""
        if reason := _rejection(self, offer):
            return self, (Rejected("fetch", reason),)

        return _downloaded(self, offer, self.running or NOTHING, "fetch")

    def reload(self) -> tuple[Self, Events]:
        """Restart the app with the newest downloaded update."""
        return _started(replace(self, running=None, reload_screen=False), _newest(self))

    def emergency(self, reason: str) -> tuple[Self, Events]:
        """Fall back to the embedded update because the running one failed to start."""
        failed = self.running
        # There is nothing to fall back to, which the reference does not describe.
        if failed is None or failed.id == self.embedded.id:
            return self, (NotSpecified(NOT_SPECIFIED[2]),)

        model = replace(
            self,
            running=self.embedded,
            failed=self.failed | {failed.id},
            emergency_reason=reason,
        )

        return model, (EmergencyFallback(failed.id, reason),)

    def install(self, build: Build) -> tuple[Self, Events]:
        """Install another build over this one, keeping downloaded updates."""
        model = replace(
            self,
            build=build,
            running=None,
            emergency_reason=None,
            is_update_available=False,
        )

        return model, ()

    def clear_log_entries(self) -> tuple[Self, Events]:
        """Do nothing, as the library ("Updates library", clearLogEntriesAsync)."""
        return self, ()

    def show_reload_screen(self) -> tuple[Self, Events]:
        return replace(self, reload_screen=True), ()

    def hide_reload_screen(self) -> tuple[Self, Events]:
        return replace(self, reload_screen=False), ()

    def set_request_headers_override(
        self, headers: Mapping[str, str] | None
    ) -> tuple[Self, Events]:
        """Override the extra headers from the next check on; None restores them."""
        return self._overridden(self.url_override, headers)

    def set_url_and_request_headers_override(
        self, url: str | None, headers: Mapping[str, str] | None
    ) -> tuple[Self, Events]:
        """Override the URL and the extra headers from the next check on; None restores them."""
        if url is not None and problem_of(url):
            return self, (
                Rejected("override", "the URL must be one with http or https"),
            )

        return self._overridden(url, headers)

    def _overridden(
        self, url: str | None, headers: Mapping[str, str] | None
    ) -> tuple[Self, Events]:
        # An override could leave an app without any update that starts.
        if not self.settings.disable_anti_bricking_measures:
            return self, (Rejected("override", "disableAntiBrickingMeasures is false"),)

        pairs = None if headers is None else tuple(headers.items())

        return replace(self, url_override=url, headers_override=pairs), ()


Network: TypeAlias = Callable[[LaunchModel, datetime], Offer]
"""Function that returns the service's offer to an app at a given time."""


def play(
    model: _Model, launches: Iterable[datetime], network: Network
) -> Iterator[tuple[_Model, Events]]:
    """Simulate launches at the given times, and yield the state and events of each."""
    for time in launches:
        model, events = model.launch(network(model, time))
        yield model, events


def _is_managed(model: LaunchModel) -> bool:
    return model.mode is Mode.RELEASE and model.is_enabled


def _rejection(model: LaunchModel, offer: Offer) -> str:
    """Return why the library rejects a check or fetch, or an empty string ("Errors")."""
    if model.mode is Mode.DEVELOPMENT_CLIENT:
        return "not in the development client"
    if model.mode is Mode.DEVELOPMENT:
        return "not in development mode"
    if not model.is_enabled:
        return f"updates are disabled: {model.disabled_reason}"

    return offer.error


def _manifest(update: Update | None) -> Update | None:
    """Return what is known of an update before its files are downloaded."""
    if update is None:
        return None

    return replace(update, assets=())


def _refusals(
    model: LaunchModel, update: Update | None, current: Update
) -> tuple[Reason, ...]:
    """Return the reasons not to load an update while ``current`` is running."""
    if update is None:
        return ()

    # The update is compared with what runs now, not with what the build contains.
    build = replace(model.build, running=current)
    reasons = list(will_load(update, build).reasons)
    if update.id in model.failed:
        reasons.append(Reason(Code.FAILED_BEFORE, "the app fell back from this update"))
    if model.rolled_back_at and _time(update) <= in_utc(model.rolled_back_at):
        text = "the app was rolled back from it to the embedded update"
        reasons.append(Reason(Code.ROLLED_BACK, text))

    return tuple(reasons)


def _is_new_roll_back(model: LaunchModel, offer: Offer, current: Update) -> bool:
    """Return whether a rollback is newer than the current update and than the last rollback."""
    if offer.roll_back_at is None:
        return False

    last_rollback = in_utc(model.rolled_back_at or _START)

    return in_utc(offer.roll_back_at) > max(_time(current), last_rollback)


def _downloaded(
    model: _Model, offer: Offer, current: Update, operation: Operation
) -> tuple[_Model, Events]:
    """Store what the service offers, if the app may load it while ``current`` is running."""
    if offer.error:
        return model, (Rejected(operation, offer.error),)
    if not offer.complete:
        return model, (Rejected(operation, "the download is incomplete"),)

    if _is_new_roll_back(model, offer, current):
        model = replace(
            model, rolled_back_at=offer.roll_back_at, is_update_available=True
        )
        return model, (Downloaded(None),)

    update = offer.update
    reasons = _refusals(model, _manifest(update), current)
    if update is None or reasons:
        return model, (Checked(False, reasons),)

    file_problems = list(asset_reasons(update))
    if file_problems:
        return model, (Rejected(operation, file_problems[0].detail),)

    others = [stored for stored in model.stored if stored.id != update.id]
    model = replace(model, stored=(*others, update), is_update_available=True)

    return model, (Downloaded(update.id),)


def _newest(model: LaunchModel) -> Update:
    """Return the update that a launch uses: the newest one that is allowed to run."""
    if not _is_managed(model):
        return model.embedded

    candidates = [
        update for update in model.stored if not _refusals(model, update, NOTHING)
    ]
    if model.settings.use_embedded_update or not candidates:
        # First, so that it wins against a downloaded one of the same time.
        candidates.insert(0, model.embedded)

    return max(candidates, key=_time)


def _started(
    model: _Model, update: Update, before: Events = ()
) -> tuple[_Model, Events]:
    """Run an update, and delete those that are no longer needed; ``before`` are the events of the launch so far."""
    is_embedded = update.id == model.embedded.id
    events: list[Event] = [*before]
    if is_embedded and _is_managed(model) and not model.settings.use_embedded_update:
        events.append(NotSpecified(NOT_SPECIFIED[1]))
    events.append(Launched(update.id, is_embedded))

    unused = _unused(model, update)
    if unused:
        events.append(Cleaned(unused))

    model = replace(
        model,
        running=update,
        stored=tuple(stored for stored in model.stored if stored.id not in unused),
        emergency_reason=None,
    )
    model = replace(model, is_update_available=model.pending is not None)

    return model, tuple(events)


def _unused(model: LaunchModel, running: Update) -> tuple[str, ...]:
    """Return the IDs of updates to delete: older than the running one, in its scope, beyond those to keep.

    That is the rule of ``maxUpdatesToKeep`` ("Configuration properties"), whose number includes the running update.
    """
    if not _is_managed(model):
        return ()

    # An embedded update need not name its own.
    scope = running.scope or model.build.scope
    older = [
        update
        for update in model.stored
        if update.scope == scope and _time(update) < _time(running)
    ]
    older.sort(key=_time, reverse=True)
    # The config may have 2.0, which is an integer in JSON.
    kept = int(model.settings.max_updates_to_keep) - 1

    return tuple(update.id for update in older[kept:])


def _time(update: Update) -> datetime:
    return in_utc(update.created_at) if update.created_at else _START
