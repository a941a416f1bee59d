"""Any reply about a session is a session or an UnexpectedReplyError, and no secret in it is shown."""

from typing import Any

from hypothesis import example, given
from hypothesis.strategies import dictionaries, integers, sampled_from

from pytest_device.errors import UnexpectedReplyError
from pytest_device.sessions.models import Session
from pytest_device.spec import SessionType
from tests.contract.document import example_config, example_session
from tests.fuzz.values import any_json, any_text, long_text

FIELDS = sorted(example_session())
CANARY = "canary-4f1c"


def read(wire: object) -> Session | UnexpectedReplyError:
    try:
        return Session.from_wire(wire)
    except UnexpectedReplyError as error:
        return error


@given(any_json)
def test_any_json_is_read_or_refused(wire: Any) -> None:
    assert isinstance(read(wire), Session | UnexpectedReplyError)


@given(dictionaries(sampled_from(FIELDS) | any_text, any_json))
def test_any_changed_session_is_read_or_refused(changes: dict[str, Any]) -> None:
    wire = example_session() | changes

    got = read(wire)

    assert isinstance(got, Session) or got.session_id == (
        wire["id"] if "id" not in changes else got.session_id
    )


@given(
    dictionaries(
        sampled_from(["id", "url", "type", "platform", "status"]), long_text | any_text
    )
)
def test_the_report_of_a_session_fits_on_one_short_line(
    changes: dict[str, Any],
) -> None:
    reported = str(read(example_session() | changes))

    assert reported.isprintable()
    assert len(reported.encode()) < 4000


@given(
    sampled_from(SessionType),
    dictionaries(any_text, any_json, max_size=3),
    sampled_from(FIELDS),
    any_json,
)
def test_no_connection_detail_is_shown(
    kind: str, more: dict[str, Any], field: str, wrong: object
) -> None:
    config = {
        name: with_canary(value)
        for name, value in {**(example_config(kind) or {}), **more}.items()
    }
    good = example_session(type=kind, remoteConfig=config)

    for wire in (
        good,
        good | {field: wrong},
        good | {"remoteConfig": [config]},
        good | {"type": "other"},
    ):
        got = read(wire)
        shown = f"{got} {got!r} {vars(got).get('remote_config')!r} {[got]}"
        assert CANARY not in shown or CANARY in str(wire.get("url"))


def with_canary(value: object) -> object:
    match value:
        case str():
            return f"{value}{CANARY}"
        case dict():
            return {str(name): with_canary(inner) for name, inner in value.items()}
        case list():
            return [with_canary(inner) for inner in value]
        case _:
            return CANARY


@given(integers(min_value=1, max_value=3000))
@example(900)
def test_the_secrets_of_deeply_nested_capabilities_are_found(depth: int) -> None:
    nested: Any = {"accessToken": CANARY}
    for _ in range(depth):
        nested = [nested]

    got = read(
        example_session(
            type="appium",
            remoteConfig={
                **(example_config("appium") or {}),
                "capabilities": {"a": nested},
            },
        )
    )

    if isinstance(got, Session):
        assert got.remote_config
        assert CANARY in set(got.remote_config.secrets())
