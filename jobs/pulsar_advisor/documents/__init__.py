"""The documents that stages write and commands print: one module for each kind, with its type, version and readers.

Within a version
- a field may be added if it has a default, which is what files written before it mean by leaving it out;
- no field may be renamed or removed, and its unit, type and meaning stay.
Anything else breaks readers and needs a new version: `SCHEMA` counts up, and `EARLIER` gets a function that turns the
last version into this one, tested on a file of it in tests/data/earlier. Nothing is written in an earlier version.
Readers ignore fields that they don't know, so a file of a later release of the same version can be read.

What only `planning` can fill in is declared there, as its result; `as_json` serialises those too.
"""
