"""YAML that an operator writes: a key that appears twice is an error, where the last one would win."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import yaml

NOT_YAML: Final = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)
"""What the library raises for a text that is no YAML, and for a value that isn't one of its tag."""


_MERGE: Final = "tag:yaml.org,2002:merge"
"""The tag of `<<`, which names no value and so has no constructor."""


class _UniqueKeys(yaml.constructor.SafeConstructor):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key.value if key.tag == _MERGE else self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"key '{key}' appears twice", node.start_mark)
        return super().construct_mapping(node, deep)


class StrictLoader(_UniqueKeys, yaml.SafeLoader):
    """YAML 1.1 as in `yaml.safe_load`."""


class FastStrictLoader(_UniqueKeys, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The same by libyaml where there is one; of too many levels it ends the process."""
