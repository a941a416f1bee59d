"""What the provider saw and how it is to fail."""

from pytest_device.auth.provider.model import Authorization, Endpoint, Failure, FailureKind, IssuedTokens, SeenRequest
from pytest_device.loopback import Journal as BaseJournal


class Journal(BaseJournal[Failure]):
    """Lists of what happened, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: tuple[SeenRequest, ...] = ()
        self.authorizations: tuple[Authorization, ...] = ()
        self.tokens: tuple[IssuedTokens, ...] = ()

    def add(self, entry: SeenRequest | Authorization | IssuedTokens) -> None:
        """Note an entry."""
        with self.noting():
            match entry:
                case SeenRequest():
                    self.requests += (entry,)
                case Authorization():
                    self.authorizations += (entry,)
                case IssuedTokens():
                    self.tokens += (entry,)

    def take_failure(self, endpoint: Endpoint, *kinds: FailureKind) -> Failure | None:
        """Return the endpoint's next failure of these kinds and count it down."""
        return self.take(lambda failure: failure.endpoint == endpoint and failure.kind in kinds)
