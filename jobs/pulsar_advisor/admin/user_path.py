"""A path in a connection's fields, as people write it; apart from `home`, since it loads pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from pulsar_advisor.admin.home import expanded

UserPath = Annotated[Path, AfterValidator(expanded)]
