"""No secret that the redactor knows survives in any text."""

from hypothesis import given
from hypothesis.strategies import characters, from_regex, lists, sampled_from, text

from pytest_device.redact import MASK, MIN_SECRET_LENGTH, Redactor
from pytest_device.secret_registry import MIN_LENGTH
from tests.test_redact import SPELLINGS

# A mask puts asterisks into the text, so what consists of these cannot be distinguished from one.
secrets = text(
    characters(codec=None, exclude_characters="*"),
    min_size=MIN_SECRET_LENGTH,
    max_size=40,
)
# Without blanks at its ends, where a terminal shows none, and long enough without the signs that shells add.
plain_secrets = text(
    characters(
        codec="utf-8", categories=["L", "N", "P", "S", "Zs"], exclude_characters="*"
    ),
    min_size=8,
    max_size=40,
).filter(
    lambda secret: (
        secret == secret.strip()
        and sum(sign not in "\\'\" " for sign in secret) >= MIN_LENGTH
    )
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


@given(plain_secrets, around, around, sampled_from(sorted(SPELLINGS)))
def test_no_other_spelling_of_a_secret_survives(
    secret: str, before: str, after: str, spelling: str
) -> None:
    spelt = SPELLINGS[spelling](secret)

    masked = Redactor([secret]).text(f"{before}{spelt}{after}")

    assert MASK in masked
    assert spelt.strip("'\"") not in masked


@given(words, words)
def test_a_secret_that_begins_like_another_leaves_nothing(
    secret: str, more: str
) -> None:
    assert Redactor([secret, secret + more]).text(f" {secret}{more} ") == f" {MASK} "


@given(text(characters(codec="ascii", categories=["L", "N", "Z"])))
def test_text_without_secrets_is_unchanged(plain: str) -> None:
    assert Redactor(["opensesame-1"]).text(plain) == plain
    assert MASK not in plain
