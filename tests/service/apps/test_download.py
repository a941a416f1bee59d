"""Downloads: results, reports and limits."""

import asyncio
import gzip
import hashlib
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_device.errors import ControllerError
from pytest_device.service.apps.download import Bounds, PageError, download, shown
from pytest_device.service.logs import logging_to
from tests.service.apps.web import Answer, web

BOUNDS = Bounds(max_bytes=100_000, seconds=120, silence_seconds=120)
ARCHIVE = b"PK\x03\x04 and so on"


def fetched(
    directory: Path,
    answers: Mapping[str, Answer],
    path: str = "/app.zip",
    *,
    bounds: Bounds = BOUNDS,
    notes: list[str] | None = None,
) -> Path:
    note = [] if notes is None else notes
    with web(answers) as url:
        return asyncio.run(
            download(url + path, directory, bounds=bounds, note=note.append)
        )


def refused(directory: Path, answer: Answer, bounds: Bounds = BOUNDS) -> str:
    with pytest.raises(ControllerError) as caught:
        fetched(directory, {"/app.zip": answer}, bounds=bounds)
    return str(caught.value)


def test_an_archive_arrives_as_it_was_sent(tmp_path: Path) -> None:
    path = fetched(
        tmp_path,
        {"/builds/notes%20app.zip?sig=s": Answer(ARCHIVE)},
        "/builds/notes%20app.zip?sig=s",
    )

    assert path.read_bytes() == ARCHIVE
    assert path.name == "notes-app.zip"
    assert path.is_relative_to(tmp_path)


def test_its_size_and_checksum_are_reported_and_its_signature_is_not(
    tmp_path: Path,
) -> None:
    notes: list[str] = []

    fetched(
        tmp_path,
        {"/app.zip?sig=abcdefgh": Answer(ARCHIVE * 100_000)},
        "/app.zip?sig=abcdefgh",
        notes=notes,
        bounds=replace(BOUNDS, max_bytes=10_000_000),
    )

    (note,) = notes
    assert "/app.zip?… in" in note
    assert f"1.4 MB, sha256 {hashlib.sha256(ARCHIVE * 100_000).hexdigest()}" in note
    assert "abcdefgh" not in note


def test_the_services_log_does_not_have_its_signature_either(tmp_path: Path) -> None:
    with logging_to(tmp_path / "service.log", "made-up-token"):
        fetched(
            tmp_path,
            {"/app.zip?sig=abcdefgh": Answer(ARCHIVE)},
            "/app.zip?sig=abcdefgh",
        )

    assert "abcdefgh" not in (tmp_path / "service.log").read_text()


def test_a_redirect_is_followed(tmp_path: Path) -> None:
    away = Answer(status="302 Found", headers={"Location": "/elsewhere"})

    assert (
        fetched(
            tmp_path, {"/app.zip": away, "/elsewhere": Answer(ARCHIVE)}
        ).read_bytes()
        == ARCHIVE
    )


def test_endless_redirects_are_refused(tmp_path: Path) -> None:
    assert "maximum allowed redirects" in refused(
        tmp_path, Answer(status="302 Found", headers={"Location": "/app.zip"})
    )


def test_a_redirect_to_a_non_http_url_is_refused(tmp_path: Path) -> None:
    answer = Answer(status="302 Found", headers={"Location": "file:///etc/passwd"})

    assert "cannot be downloaded: Request URL has an unsupported protocol" in refused(
        tmp_path, answer
    )


def test_a_refusal_is_reported_with_its_status(tmp_path: Path) -> None:
    assert "/app.zip returned 403 Forbidden (expected an archive)" in refused(
        tmp_path, Answer(status="403 Forbidden")
    )


def test_a_web_page_instead_of_an_archive_is_reported(tmp_path: Path) -> None:
    answer = Answer(
        b"<title>Log in</title>", headers={"Content-Type": "text/html; charset=utf-8"}
    )

    with pytest.raises(PageError, match=r"is a web page \(text/html\), not an archive"):
        fetched(tmp_path, {"/app.zip": answer})


def test_a_length_above_the_limit_is_refused_before_the_download(
    tmp_path: Path,
) -> None:
    said = refused(tmp_path, Answer(silent=True, headers={"Content-Length": "100001"}))

    assert "larger than the limit of 0 MB" in said


def test_an_endless_stream_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    assert "larger than the limit of 0 MB" in refused(
        tmp_path, Answer(endless=b"x" * 10_000)
    )
    assert all(path.stat().st_size <= 100_000 for path in tmp_path.rglob("app.zip"))


def test_a_compressed_response_counts_by_its_decompressed_size(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(1_000_000))

    assert "larger than the limit of 0 MB" in refused(
        tmp_path, Answer(bomb, headers={"Content-Encoding": "gzip"})
    )


def test_a_silent_server_times_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/app.zip"
        with pytest.raises(ControllerError, match=r"no data for 0\.1 s"):
            asyncio.run(
                download(
                    address,
                    tmp_path,
                    bounds=replace(BOUNDS, silence_seconds=0.1),
                    note=print,
                )
            )


def test_a_slow_server_eventually_times_out(tmp_path: Path) -> None:
    said = refused(
        tmp_path, Answer(endless=b"PK"), replace(BOUNDS, seconds=1, max_bytes=10**12)
    )

    assert "timed out after 1 s" in said


def test_a_truncated_body_is_not_an_archive(tmp_path: Path) -> None:
    answer = Answer(ARCHIVE, headers={"Content-Length": "5000"})

    assert "cannot be downloaded: peer closed connection" in refused(tmp_path, answer)


def test_an_unreachable_server_is_reported_without_credentials(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://ada:pw123456@127.0.0.1:{free.getsockname()[1]}/app.zip"

    with pytest.raises(
        ControllerError, match=r"http://\*\*\*@127.* cannot be downloaded: "
    ) as caught:
        asyncio.run(download(address, tmp_path, bounds=BOUNDS, note=print))

    assert "pw123456" not in str(caught.value)


def test_no_proxy_is_used_for_loopback_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    assert fetched(tmp_path, {"/app.zip": Answer(ARCHIVE)}).read_bytes() == ARCHIVE


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("https://x.example/a.zip", "https://x.example/a.zip"),
        ("https://x.example/a.zip?X-Sig=1#f", "https://x.example/a.zip?…"),
        ("https://ada:secret@x.example/a.zip#token", "https://***@x.example/a.zip"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, plain: str) -> None:
    assert shown(url) == plain
