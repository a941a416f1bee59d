"""Remote access to services that one process of a run hosts for the others on this machine."""

import asyncio
import hmac
import pickle
import secrets
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pytest_device.errors import hides_frames
from pytest_device.redact import uses_tls
from pytest_device.secret_registry import SECRETS
from pytest_device.serving import AppServer

if TYPE_CHECKING:
    import httpx

__tracebackhide__ = hides_frames

Make: TypeAlias = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class _Call:
    """Access to a service member: ``args`` to call it, ``assigned`` to set it, neither to read it.

    ``secrets`` is the number of the host's secrets that the caller knows.
    """

    service: str
    path: tuple[str, ...] = ()
    args: tuple[Any, ...] | None = None
    keywords: Mapping[str, Any] = field(default_factory=dict[str, Any])
    assigned: tuple[Any, ...] = ()
    make: Make | None = None
    secrets: int = 0


@dataclass(frozen=True, slots=True)
class _Reply:
    value: object = None
    error: Exception | None = None
    is_reference: bool = False
    secrets: tuple[int, tuple[str, ...]] = (0, ())
    """How many secrets the host has learned, and those that the caller does not know yet."""


class ServiceHost:
    """Server that creates each service on first use and closes it in `close`; other processes connect with `ticket`.

    Each reply passes on the secrets that the host's process has learned, before the caller can print them.
    """

    def __init__(self) -> None:
        self._key = secrets.token_urlsafe(32)
        SECRETS.learn(self._key)
        self._services: dict[str, Any] = {}
        self._answers: set[Future[bytes]] = set()
        self._lock = threading.Lock()
        self._open = ExitStack()
        self._server = AppServer(same_user=True)
        self._server.start(self._app)

    @property
    def ticket(self) -> dict[str, str]:
        """URL and key of the server; the key is a secret, because requests are unpickled."""
        return {"url": self._server.url, "key": self._key}

    def close(self) -> None:
        """Stop the server and close the services."""
        # Whoever still waits for an answer was interrupted.
        for answer in tuple(self._answers):
            with suppress(InvalidStateError):
                answer.set_result(b"")
        self._server.stop()
        self._open.close()

    async def _app(
        self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Any
    ) -> None:
        from starlette.requests import Request
        from starlette.responses import Response

        request = Request(cast("Any", scope), receive)

        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._key}".encode()):
            await Response(status_code=401)(cast("Any", scope), receive, send)
            return

        body = await self._answer_to(await request.body())
        await Response(body)(cast("Any", scope), receive, send)

    async def _answer_to(self, body: bytes) -> bytes:
        """Return the reply from a thread that ends with the process.

        A thread pool would wait for its threads: a call that takes a minute, such as a sign-in on a page, would delay
        the end of an interrupted run.
        """
        answer = Future[bytes]()
        answer.set_running_or_notify_cancel()  # a canceled request must not cancel it

        def run() -> None:
            with suppress(InvalidStateError):  # after `close`
                try:
                    answer.set_result(self._answered(body))
                except Exception as error:  # noqa: BLE001  # an answer that can't be pickled
                    answer.set_exception(error)

        self._answers.add(answer)

        try:
            threading.Thread(target=run, daemon=True).start()
            return await asyncio.wrap_future(answer)
        finally:
            self._answers.discard(answer)

    def _answered(self, body: bytes) -> bytes:
        known = 0

        try:
            call: _Call = pickle.loads(body)  # noqa: S301  # the caller has the key
            known = call.secrets
            return pickle.dumps(
                replace(self._reply(call), secrets=SECRETS.since(known))
            )
        except Exception as error:  # noqa: BLE001  # raised again in the calling process
            return pickle.dumps(_Reply(error=error, secrets=SECRETS.since(known)))

    def _reply(self, call: _Call) -> _Reply:
        if call.make:
            with self._lock:
                if call.service not in self._services:
                    self._services[call.service] = self._open.enter_context(call.make())
            return _Reply()

        if call.assigned:
            owner: object = reduce(
                getattr, call.path[:-1], self._services[call.service]
            )
            setattr(owner, call.path[-1], call.assigned[0])
            return _Reply()

        value: Any = reduce(getattr, call.path, self._services[call.service])
        if call.args is not None:
            return _Reply(value(*call.args, **call.keywords))

        is_reference = callable(value) or (
            hasattr(value, "__dict__") and not is_dataclass(value)
        )
        return _Reply(is_reference=True) if is_reference else _Reply(value)


class _Host:
    """The host as another process sees it."""

    def __init__(self, http: "httpx.Client") -> None:
        self._http = http
        self._known_secrets = 0

    def ask(self, call: _Call) -> _Reply:
        """Return the reply to a call, after this process has learned the secrets that it may contain.

        Raises the error of the service.
        """
        content = pickle.dumps(replace(call, secrets=self._known_secrets))
        answer = self._http.post("/", content=content).raise_for_status()
        reply: _Reply = pickle.loads(answer.content)  # noqa: S301  # the host has the key
        self._known_secrets, secrets_of_reply = reply.secrets
        SECRETS.learn(*secrets_of_reply)
        if reply.error:
            raise reply.error

        return reply


class _Remote:
    """Proxy of a service, or of one of its members, in another process."""

    def __init__(self, host: "_Host", service: str, path: tuple[str, ...] = ()) -> None:
        vars(self).update(_host=host, _service=service, _path=path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocol lookups by Python, such as __deepcopy__
            raise AttributeError(name)

        path = (*self._path, name)
        reply = self._host.ask(_Call(self._service, path))
        return (
            _Remote(self._host, self._service, path)
            if reply.is_reference
            else reply.value
        )

    def __setattr__(self, name: str, value: object) -> None:
        self._host.ask(_Call(self._service, (*self._path, name), assigned=(value,)))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._host.ask(_Call(self._service, self._path, args, keywords)).value


@contextmanager
def shared(ticket: Mapping[str, str], service: str, make: Make) -> Generator[Any]:
    """Provide a proxy of a service, which the host creates on the first request; its errors are raised here."""
    import httpx

    headers = {"Authorization": f"Bearer {ticket['key']}"}
    url = ticket["url"]
    SECRETS.learn(ticket["key"])

    with httpx.Client(
        base_url=url,
        headers=headers,
        timeout=None,  # noqa: S113  # tests set timeouts
        verify=uses_tls(url),
    ) as http:
        host = _Host(http)
        host.ask(_Call(service, make=make))
        yield _Remote(host, service)
