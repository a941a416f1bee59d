"""No secret that the redactor knows survives in any text."""

import json
from urllib.parse import quote

from hypothesis import given
from hypothesis.strategies import characters, from_regex, lists, sampled_from, text

from pytest_device.redact import MASK, MIN_SECRET_LENGTH, Redactor

# A mask puts asterisks into the text, so what consists of these cannot be distinguished from one.
secrets = text(
    characters(codec=None, exclude_characters="*"),
    min_size=MIN_SECRET_LENGTH,
    max_size=40,
)
words = from_regex(r"[a-z]{6,20}", fullmatch=True)
around = text(characters(codec=None)) | sampled_from(
    ["https://", "@", "...", "…", "Authorization: Bearer ", "?token=", "\\", "'", '"']
)


@given(lists(secrets, min_size=1, max_size=5), lists(around, min_size=6, max_size=6))
def test_no_secret_survives(known: list[str], texts: list[str]) -> None:
    masked = Redactor(known).text(
        "".join(
            f"{before}{secret}" for before, secret in zip(texts, known, strict=False)
        )
    )

    assert [secret for secret in known if secret in masked] == []


@given(from_regex(r"[!-)+-~]{6,40}", fullmatch=True), around, around)
def test_no_other_spelling_of_a_secret_survives(
    secret: str, before: str, after: str
) -> None:
    redactor = Redactor([secret])

    for spelt in (repr(secret), json.dumps(secret), quote(secret, safe="")):
        inside = spelt.strip("'\"")
        assert len(inside) < MIN_SECRET_LENGTH or inside not in redactor.text(
            f"{before}{spelt}{after}"
        )


@given(words, words)
def test_a_secret_that_begins_like_another_leaves_nothing(
    secret: str, more: str
) -> None:
    assert Redactor([secret, secret + more]).text(f" {secret}{more} ") == f" {MASK} "


@given(text(characters(codec="ascii", categories=["L", "N", "Z"])))
def test_text_without_secrets_is_unchanged(plain: str) -> None:
    assert Redactor(["opensesame-1"]).text(plain) == plain
    assert MASK not in plain
