"""Creates what a process's pool works with, from the run's settings."""

import time
from pathlib import Path

import pytest

from pytest_device.controllers.health import problem_of
from pytest_device.plugin.provider.backend import Backend, RemoteBackend
from pytest_device.redact import Redactor
from pytest_device.report.verdict import verdict_of
from pytest_device.scheduling.history import History
from pytest_device.sessions.attempt import SessionConfig
from pytest_device.sessions.breaker import Breaker, Gate, Judge
from pytest_device.sessions.device_session import DeviceSession
from pytest_device.sessions.events import Note
from pytest_device.sessions.lifecycle import WaitPolicy
from pytest_device.sessions.reporter import Relay
from pytest_device.sessions.warm import WarmConfig, WarmStore
from pytest_device.settings import Settings


def session_config(
    settings: Settings, backend: Backend, history: History, relay: Relay, gate: Gate
) -> SessionConfig:
    """Return the configuration of this process's sessions; a forked child needs its own."""
    return SessionConfig(
        backend.sessions(),
        time.monotonic,
        relay,
        problem_of,
        settings.start_attempts,
        gate,
        history.boots,
    )


def notify_stopping(session: DeviceSession) -> None:
    """Notify the suite's hooks of a used session that is about to be stopped."""
    if isinstance(session.user, pytest.Item) and not session.requirement.attach:
        session.user.ihook.pytest_device_stopping(
            item=session.user, device_session=session.session
        )


def wait_policy(settings: Settings) -> WaitPolicy:
    """Return the policy for waiting for a session, from the settings."""
    return WaitPolicy(
        settings.wait_timeout_seconds,
        settings.poll_interval_seconds,
        settings.controller_timeout_seconds,
        learned=settings.polling == "learned",
    )


def new_gate(
    settings: Settings, redactor: Redactor, judge: Judge | None = None
) -> Gate:
    """Return the gate that is asked before each attempt; without a ``judge`` of the run, this process decides alone."""
    judge = judge or Breaker(settings.start_attempts, time.monotonic)
    return Gate(judge, verdict_of=verdict_of, mask=redactor.text)


def warm_store(
    settings: Settings, backend: Backend, *, relay: Relay
) -> WarmStore | None:
    """Return the store of warm sessions, None if none are kept; report the reason if they were requested."""
    if settings.keep_warm_ignored_because:
        relay.event(Note(settings.keep_warm_ignored_because))
    if not (
        settings.keep_warm and settings.state_dir and isinstance(backend, RemoteBackend)
    ):
        return None
    if not backend.sessions().can_keep_warm:
        return None
    slots = backend.slots("a check for warm devices")
    config = WarmConfig(
        settings.keep_warm,
        Path(settings.state_dir),
        owner=backend.sessions,  # a forked child has its own
        problem_of=problem_of,
        relay=relay,
        has_room=slots.has_room if slots else lambda _sessions: True,
    )
    return WarmStore(config)
