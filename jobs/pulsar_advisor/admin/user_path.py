"""A path in a connection's fields, as people write it; separate from `home` because it loads pydantic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from pulsar_advisor.admin.home import expanded

UserPath = Annotated[Path, AfterValidator(expanded)]
