"""The messages that reads from Oxia need: names, numbers and types from its published protocol.

Oxia's Python client has them all, but depends on a compiler and a linter. They are declared as protocol buffers 2,
which has the same bytes: so a shard's number is sent even if it is 0, as the protocol demands, and text that isn't
UTF-8 arrives as bytes. On the wire, an entry of the map of namespaces is a message with a key and a value. Times are
signed, so that each fits a table.
Source: `client.proto` of Oxia, in its Python client 0.2.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles

PACKAGE: Final = "io.streamnative.oxia.proto"
FOUND: Final = 0
"""The status of a record that exists."""

_MANY: Final = "repeated "
_FIELDS: Final[Mapping[str, Mapping[str, tuple[int, str]]]] = {
    "ShardAssignmentsRequest": {"namespace": (1, "string")},
    "ShardAssignments": {"namespaces": (1, "repeated Namespace")},
    "Namespace": {"key": (1, "string"), "value": (2, "NamespaceShardsAssignment")},
    "NamespaceShardsAssignment": {"assignments": (1, "repeated ShardAssignment")},
    "ShardAssignment": {"shard": (1, "int64"), "leader": (2, "string"), "int32_hash_range": (3, "Int32HashRange")},
    "Int32HashRange": {"min_hash_inclusive": (1, "fixed32"), "max_hash_inclusive": (2, "fixed32")},
    "ListRequest": {"shard": (1, "int64"), "start_inclusive": (2, "string"), "end_exclusive": (3, "string")},
    "ListResponse": {"keys": (1, "repeated string")},
    "ReadRequest": {"shard": (1, "int64"), "gets": (2, "repeated GetRequest")},
    "ReadResponse": {"gets": (1, "repeated GetResponse")},
    "GetRequest": {"key": (1, "string"), "include_value": (2, "bool")},
    "GetResponse": {"status": (1, "int32"), "version": (2, "Version"), "value": (3, "bytes")},
    "Version": {
        "modifications_count": (2, "int64"),
        "created_timestamp": (3, "sfixed64"),
        "modified_timestamp": (4, "sfixed64"),
    },
}


def _classes() -> Mapping[str, Any]:
    file = FileDescriptorProto(name="oxia_reads.proto", package=PACKAGE, syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for field, (number, of_type) in fields.items():
            kind = of_type.removeprefix(_MANY)
            added = message.field.add(name=field, number=number)
            added.label = (
                FieldDescriptorProto.LABEL_REPEATED if of_type != kind else FieldDescriptorProto.LABEL_OPTIONAL
            )
            if kind in _FIELDS:
                added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
            else:
                added.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    pool = DescriptorPool()  # a separate pool: another client in the process may have registered the whole protocol
    pool.Add(file)
    found = GetMessageClassesForFiles([file.name], pool)
    return {name.removeprefix(f"{PACKAGE}."): kind for name, kind in found.items()}


_OF_NAME: Final = _classes()
ShardAssignmentsRequest: Final = _OF_NAME["ShardAssignmentsRequest"]
ShardAssignments: Final = _OF_NAME["ShardAssignments"]
ListRequest: Final = _OF_NAME["ListRequest"]
ListResponse: Final = _OF_NAME["ListResponse"]
ReadRequest: Final = _OF_NAME["ReadRequest"]
ReadResponse: Final = _OF_NAME["ReadResponse"]
GetRequest: Final = _OF_NAME["GetRequest"]
