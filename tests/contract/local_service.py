"""The local service in this process: without a network, with a fixed clock and devices that the test controls."""

from collections.abc import Mapping
from typing import Any, Final

import httpx

from pytest_device.service.accounts import AccessToken, Account, Role
from tests.contract.document import example_config, example_session, request_body, table
from tests.fakes.devices import FakeRunner
from tests.fakes.local_service import InProcessService

BASE_URL: Final = "http://127.0.0.1:8000"
ROBOT_TOKEN: Final = "made-up-token-of-a-robot"
VIEWER_TOKEN: Final = "made-up-token-of-a-viewer"
PERSON_TOKEN: Final = "made-up-token-of-a-person"
OUTSIDER_TOKEN: Final = "made-up-token-of-an-outsider"
OPERATIONS: Final = {row["operation"]: row for row in table("operations")}
TARGETS: Final[Mapping[str, str]] = {
    "unknown": "00000000-0000-4000-8000-00000000dead",
    "malformed": "seventeen",
}
_HEADERS: Final[Mapping[str, Mapping[str, str]]] = {
    "nobody": {},
    "invalid-token": {"Authorization": "Bearer made-up-token-of-no-one"},
    "robot-developer": {"Authorization": f"Bearer {ROBOT_TOKEN}"},
    "robot-below-developer": {"Authorization": f"Bearer {VIEWER_TOKEN}"},
    "person": {"Authorization": f"Bearer {PERSON_TOKEN}"},
    "outsider": {"Authorization": f"Bearer {OUTSIDER_TOKEN}"},
}


class DocumentedService:
    """The local service, called as the document's tables describe, with devices that do what the test says.

    It has one project, and users with and without access to it.
    """

    def __init__(
        self, *, simulator_access: bool = True, limit_minutes: int = 115
    ) -> None:
        owner = Account(
            app_ids=frozenset({example_session()["appId"]}),
            tokens=(
                AccessToken.of(ROBOT_TOKEN, Role.DEVELOPER),
                AccessToken.of(VIEWER_TOKEN, Role.VIEWER),
                AccessToken.of(PERSON_TOKEN, Role.ADMIN),
            ),
            simulator_access=simulator_access,
            max_duration_minutes=limit_minutes,
        )
        stranger = Account(
            app_ids=frozenset(), tokens=(AccessToken.of(OUTSIDER_TOKEN, Role.ADMIN),)
        )
        self.runner = FakeRunner()
        service = InProcessService(
            now=1_772_600_767.123,
            runner=self.runner,
            accounts=[owner, stranger],
            base_url=BASE_URL,
            testing=False,
        )
        self.clock, self.transport = service.clock, service.transport

    def call(
        self,
        operation: str,
        *,
        session_id: str = "",
        body: object = None,
        caller: str = "robot-developer",
    ) -> httpx.Response:
        """Send a request as the table of operations describes it."""
        row = OPERATIONS[operation]
        url = BASE_URL + row["path"].replace(":deviceRunSessionId", session_id)
        headers = {"Content-Type": "application/json", **_HEADERS[caller]}
        with httpx.Client(transport=self.transport) as http:
            return http.request(
                row["method"], url, json=body if row["body"] else None, headers=headers
            )

    def session(self, operation: str, **call: Any) -> dict[str, Any]:
        """Return the session of a call that succeeds."""
        reply = self.call(operation, **call)
        assert reply.status_code == OPERATIONS[operation]["success"], reply.text
        session: dict[str, Any] = reply.json()["data"]
        return session

    def create(self, **change: Any) -> dict[str, Any]:
        return self.session("create", body=request_body({"change": change}))

    def session_in(self, status: str, **change: Any) -> dict[str, Any]:
        """Return a session that was moved to a status, each step at a different time."""
        session_id = self.create(**change)["id"]
        if status != "new":
            self.trigger("fail" if status == "errored" else "ready", session_id)
        if status == "stopped":
            self.trigger("stop", session_id)
        return self.session("get", session_id=session_id)

    def trigger(self, trigger: str, session_id: str) -> dict[str, Any]:
        """Trigger an event of a session a little later; return the session afterwards."""
        self.clock.advance(1.5)
        match trigger:
            case "ready":
                request = self.runner.record(session_id).request
                config = example_config(request.get("type", "agent-device"))
                self.runner.boot(session_id, config or {})
            case "fail":
                self.runner.fail(session_id, "the device did not boot")
            case "stop":
                return self.session("stop", session_id=session_id)
            case _:
                pass
        return self.session("get", session_id=session_id)
