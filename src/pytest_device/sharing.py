"""Remote access to services that one process of a run hosts for the others on this machine."""

import asyncio
import hmac
import pickle
import secrets
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass, replace
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
    """Access to a member of a service.

    Attributes:
        service: The name of the service.
        path: The names of the attributes that lead to the member.
        args: The arguments to call it with; None unless it is called.
        keywords: The keyword arguments of the call.
        assigned: The value to set it to; empty unless it is set.
        make: Creates the service if there is none with this name yet.
        secrets: The number of the host's secrets that the caller knows.
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
    """The outcome of a call: a value, an error, or that the member is to be used by reference."""

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
        self._pending: set[Future[bytes]] = set()
        """Replies of calls in progress."""
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
        # Whoever still waits for a reply was interrupted.
        for reply in tuple(self._pending):
            with suppress(InvalidStateError):
                reply.set_result(b"")

        self._server.stop()
        self._open.close()

    async def _app(
        self, scope: Mapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Any
    ) -> None:
        from starlette.requests import Request
        from starlette.responses import Response

        request = Request(cast("Any", scope), receive)
        authorization = request.headers.get("authorization", "").encode()
        expected = f"Bearer {self._key}".encode()
        if not hmac.compare_digest(authorization, expected):
            await Response(status_code=401)(cast("Any", scope), receive, send)
            return

        body = await self._reply_from_thread(await request.body())
        await Response(body)(cast("Any", scope), receive, send)

    async def _reply_from_thread(self, body: bytes) -> bytes:
        """Return the reply to a call from a thread that ends with the process.

        A thread pool would wait for its threads: a call that takes a minute, such as a sign-in on a page, would delay
        the end of an interrupted run.
        """
        reply = Future[bytes]()
        reply.set_running_or_notify_cancel()  # a canceled request must not cancel it

        def run() -> None:
            with suppress(InvalidStateError):  # after `close`
                try:
                    reply.set_result(self._reply_to(body))
                except Exception as error:  # noqa: BLE001  # a value that can't be pickled
                    reply.set_exception(error)

        self._pending.add(reply)
        try:
            threading.Thread(target=run, daemon=True).start()
            return await asyncio.wrap_future(reply)
        finally:
            self._pending.discard(reply)

    def _reply_to(self, body: bytes) -> bytes:
        secrets_of_caller = 0
        try:
            call: _Call = pickle.loads(body)  # noqa: S301  # the caller has the key
            secrets_of_caller = call.secrets
            reply = self._run(call)
            new_secrets = SECRETS.since(secrets_of_caller)
            return pickle.dumps(replace(reply, secrets=new_secrets))
        except Exception as error:  # noqa: BLE001  # raised again in the calling process
            new_secrets = SECRETS.since(secrets_of_caller)
            return pickle.dumps(_Reply(error=error, secrets=new_secrets))

    def _run(self, call: _Call) -> _Reply:
        if call.make:
            with self._lock:
                if call.service not in self._services:
                    service = self._open.enter_context(call.make())
                    self._services[call.service] = service
            return _Reply()

        if call.assigned:
            *parents, name = call.path
            owner = self._member(call.service, parents)
            setattr(owner, name, call.assigned[0])
            return _Reply()

        value = self._member(call.service, call.path)
        if call.args is not None:
            return _Reply(value(*call.args, **call.keywords))

        # Values are copied; an object with a state, or a method, stays here and is called here.
        has_state = hasattr(value, "__dict__") and not is_dataclass(value)
        if callable(value) or has_state:
            return _Reply(is_reference=True)
        return _Reply(value)

    def _member(self, service: str, path: Sequence[str]) -> Any:
        member: Any = self._services[service]
        for name in path:
            member = getattr(member, name)
        return member


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
        response = self._http.post("/", content=content).raise_for_status()
        reply: _Reply = pickle.loads(response.content)  # noqa: S301  # the host has the key

        self._known_secrets, new_secrets = reply.secrets
        SECRETS.learn(*new_secrets)
        if reply.error:
            raise reply.error

        return reply


class _Remote:
    """Proxy of a service, or of one of its members, in another process."""

    _host: _Host
    _service: str
    _path: tuple[str, ...]

    def __init__(self, host: _Host, service: str, path: tuple[str, ...] = ()) -> None:
        # Its own __setattr__ would set the members of the service.
        object.__setattr__(self, "_host", host)
        object.__setattr__(self, "_service", service)
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocol lookups by Python, such as __deepcopy__
            raise AttributeError(name)

        path = (*self._path, name)
        reply = self._host.ask(_Call(self._service, path))
        if reply.is_reference:
            return _Remote(self._host, self._service, path)
        return reply.value

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
