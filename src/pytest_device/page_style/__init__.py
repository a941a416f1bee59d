"""The look that the pages of the local service and of the identity provider share.

It stands on the ground floor because neither of the two may import the other.
"""

from pathlib import Path
from typing import Final

DIRECTORY: Final = Path(__file__).parent
STYLESHEET: Final = "base.css"
