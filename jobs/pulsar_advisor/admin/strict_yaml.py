"""YAML that an operator writes: a duplicate key is an error, where otherwise the last one would win."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import yaml

NOT_YAML: Final = (yaml.YAMLError, ValueError, LookupError, AttributeError, OverflowError, RecursionError)
"""What the library raises for a text that isn't YAML, and for a value that doesn't fit its tag."""


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
    """The same with libyaml, if available; a document nested too deeply crashes the process."""
