"""The fixtures of notifications."""

import pytest

from pytest_device.testing import FaultyService


def test_the_suites_own_delivery_is_used_and_other_session_types_are_refused(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    del service
    pytester.makepyfile("""
        import pytest
        from pytest_device import ConfigError

        @pytest.fixture(scope="session")
        def device_service_settings():
            return {"device_notifications": {"handler_timeout_seconds": 3}}

        class TestOwn:
            sent = []

            @pytest.fixture
            def device_push_delivery(self):
                return lambda message, device: self.sent.append((message.title, device.platform))

            @pytest.mark.device(platform="ios", type="web-preview-only")
            def test_sends(self, device_push, device_notifications):
                assert device_notifications.platform == "ios"
                device_push.send({"title": "News"})
                assert self.sent == [("News", "ios")]

        @pytest.mark.device(platform="ios", type="web-preview-only")
        def test_refuses(device_push):
            reason = "the ios device of session .*: sessions of type web-preview-only can't receive push messages"
            with pytest.raises(ConfigError, match=reason):
                device_push.send({"title": "News"})
    """)

    pytester.runpytest().assert_outcomes(passed=2)


def test_a_misspelled_name_is_reported_before_the_device_is_asked(
    pytester: pytest.Pytester, service: FaultyService
) -> None:
    del service
    pytester.makepyfile("""
        import pytest
        from pytest_device import ConfigError

        sent = []

        @pytest.fixture
        def device_push_delivery():
            return lambda message, device: sent.append(message)

        @pytest.mark.device(platform="ios", type="web-preview-only")
        def test_sends(device_push):
            device_push.send({"titel": "News", "subtitle": "Local"})

        def test_nothing_was_sent():
            assert not sent
    """)

    result = pytester.runpytest()

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["E *ConfigError: content has an unknown name 'titel': did you mean 'title'[?]"]
    )


def test_the_center_and_the_endpoint_need_no_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_center="""
        import httpx
        import pytest

        @pytest.fixture(scope="session")
        def device_service_settings():
            return {"device_notifications": {"platform": "ios", "handler_timeout_seconds": 3}}

        def test_token(device_notifications, device_push_endpoint):
            options = {"application_id": "a", "device_id": "d", "project_id": "p"}
            with httpx.Client() as client:
                url = device_push_endpoint.base_url
                token = device_notifications.get_push_token(client, base_url=url, **options)
            assert token in device_push_endpoint.tokens
            assert token.data.startswith("VendorPushToken[")
            print("the token is", token.data, device_notifications.get_device_push_token().data)
        """,
        test_missing="def test_missing(device_notifications): ...",
    )

    result = pytester.runpytest("-rP")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["the token is [*][*][*] device-token"])
    needed = "*device_notifications needs platform, handler_timeout_seconds: return them from device_service_settings*"
    result.stdout.fnmatch_lines([needed])
