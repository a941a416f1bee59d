"""Redirect URIs in each environment of the document."""

from typing import Any

import pytest

from pytest_device import auth
from pytest_device.errors import AuthConfigError

CONFIG = {
    "scheme": "myapp",
    "ios": {"bundleIdentifier": "com.acme.App"},
    "android": {"package": "com.acme.app_two"},
}


@pytest.mark.parametrize(
    ("options", "app", "expected"),
    [
        ({}, {"environment": "standalone"}, "myapp://"),
        ({"scheme": "other", "path": "r"}, {"environment": "standalone"}, "other://r"),
        (
            {"path": "a b/ü", "queryParams": {"q": "x&y"}},
            {"environment": "bare"},
            "myapp://a%20b/%C3%BC?q=x%26y",
        ),
        ({"native": "com.acme:/oauth"}, {"environment": "bare"}, "com.acme:/oauth"),
        (
            {"path": "r"},
            {"environment": "bare", "config": {"ios": CONFIG["ios"]}},
            "com.acme.App://r",
        ),
        (
            {"path": "r"},
            {
                "environment": "bare",
                "platform": "android",
                "config": {"android": CONFIG["android"]},
            },
            "com.acme.app_two://r",
        ),
        (
            {"native": "com.acme:/oauth", "path": "/r", "queryParams": {"a": "1"}},
            {"environment": "store_client", "host_uri": "10.0.0.2:8081?channel=x"},
            "vendorgo://10.0.0.2:8081/--/r?a=1&channel=x",
        ),
        (
            {"path": "r", "preferLocalhost": True},
            {"environment": "store_client", "host_uri": "10.0.0.2:8081"},
            "vendorgo://localhost:8081/--/r",
        ),
        (
            {"path": "r"},
            {
                "environment": "store_client",
                "config": {**CONFIG, "hostUri": "10.0.0.2:8081"},
            },
            "vendorgo://10.0.0.2:8081/--/r",
        ),
        (
            {"native": "com.acme:/oauth", "path": "r"},
            {"environment": "web", "current_url": "https://app.example/page?x#y"},
            "https://app.example/r",
        ),
    ],
)
def test_a_redirect_uri_depends_on_how_the_app_runs(
    options: dict[str, Any], app: dict[str, Any], expected: str
) -> None:
    assert (
        auth.make_redirect_uri(options, **{"platform": "ios", "config": CONFIG, **app})
        == expected
    )


@pytest.mark.parametrize(
    ("options", "app", "message"),
    [
        ({}, {"environment": "web"}, "current_url"),
        ({}, {"environment": "web", "current_url": "about:blank"}, "current_url"),
        ({}, {"environment": "web", "current_url": "http://["}, "must be a URL"),
        (
            {},
            {"environment": "storeClient"},
            "'storeClient' must be one of standalone, bare, store_client, web",
        ),
        ({}, {"environment": "bare", "config": {"name": "x"}}, "has no scheme"),
        ({"scheme": "My App"}, {"environment": "bare"}, "'My App' must be"),
        ({"pth": "r"}, {"environment": "bare"}, "unknown fields: pth"),
        ({}, {"environment": "bare", "config": {"ios": "myapp"}}, "has no scheme"),
    ],
)
def test_an_unusable_configuration_for_redirect_uris_is_an_error(
    options: dict[str, Any], app: dict[str, Any], message: str
) -> None:
    with pytest.raises(AuthConfigError, match=message):
        auth.make_redirect_uri(options, **{"platform": "ios", "config": CONFIG, **app})


def test_the_older_functions_do_the_same_with_a_restriction() -> None:
    assert (
        auth.get_redirect_url("r", environment="standalone", config=CONFIG)
        == "myapp://r"
    )
    with pytest.raises(AuthConfigError, match="existing native"):
        auth.get_redirect_url("r", environment="bare", config=CONFIG)
    with pytest.warns(DeprecationWarning, match="make_redirect_uri"):
        assert (
            auth.get_default_return_url("r", environment="standalone", config=CONFIG)
            == "myapp://r"
        )
