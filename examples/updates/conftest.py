"""The app under test and its update service."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_device import Platform

pytest.importorskip("http_sf", reason="needs the extra services: pip install 'pytest-device[services]'")

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate

from pytest_device.updates import CodeSigning, generate_code_signing
from pytest_device.updates.service import DeviceUpdateService

APP = Path(__file__).with_name("app")


@pytest.fixture(scope="session")
def signing() -> CodeSigning:
    return generate_code_signing("Notes", years=1)


@pytest.fixture(scope="session")
def device_service_settings(signing: CodeSigning) -> Mapping[str, Mapping[str, Any]]:
    return {"device_update_service": {"signing": signing}}


@pytest.fixture
def device_appium_options(
    device_platform: Platform, device_update_service: DeviceUpdateService, signing: CodeSigning
) -> dict[str, Any]:
    """Pass the app the settings that real builds have in their native configuration."""
    key = load_pem_x509_certificate(signing.certificate.encode()).public_key()
    public = base64.b64encode(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()
    url = device_update_service.url
    arguments = [f"--url={url}", f"--key={public}", f"--platform={device_platform}", f"--device={device_platform}"]
    if device_platform is Platform.ANDROID:
        return {"appium:app": str(APP), "appium:optionalIntentArguments": " ".join(arguments)}
    return {"appium:app": str(APP), "appium:processArguments": {"args": arguments}}
