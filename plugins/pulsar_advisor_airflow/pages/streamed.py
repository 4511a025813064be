"""Sends large files in pieces: a whole file or one range of it, with only one piece in memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import BinaryIO, Final

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from upath import UPath

from pulsar_advisor.model.errors import StorageError, UsageError
from pulsar_advisor.storage.files import is_local

_PIECE_BYTES: Final = 64 << 10
_RANGE: Final = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def streamed(request: Request, path: UPath, media_type: str, headers: Mapping[str, str]) -> Response:
    """The file, or the range that the request asks for; for several ranges the whole file, as HTTP allows.

    Raises `UsageError` if there is no such file, `StorageError` if it can't be read.
    """
    try:
        written = path.stat()
        file = _opened(path)
        size = file.seek(0, 2)  # of the open file: another may take its name meanwhile
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path.name}") from error
    except OSError as error:
        raise StorageError(f"can't read {path}: {error.strerror or error}") from error
    tag = f'"{written.st_mtime_ns:x}-{size:x}"'
    answered = {**headers, "Accept-Ranges": "bytes", "ETag": tag}
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    if asked is None or asked[0] == "bytes=-" or request.headers.get("if-range", tag) != tag:
        first, last, status = 0, size - 1, HTTPStatus.OK
    else:
        first = int(asked[1]) if asked[1] else max(size - int(asked[2]), 0)
        last = min(int(asked[2]), size - 1) if asked[1] and asked[2] else size - 1
        if first > last:
            file.close()
            return Response(status_code=416, headers={**answered, "Content-Range": f"bytes */{size}"})
        status = HTTPStatus.PARTIAL_CONTENT
        answered["Content-Range"] = f"bytes {first}-{last}/{size}"
    answered["Content-Length"] = str(last - first + 1)
    return StreamingResponse(_pieces(file, first, last), status, answered, media_type)


def _opened(path: UPath) -> BinaryIO:
    """The open regular file: a link, also of its folder, could expose a file of the web server; a pipe would block."""
    if not is_local(path):
        return path.open("rb")
    folder = os.open(path.parent.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        options = os.O_NOFOLLOW | os.O_NONBLOCK
        return open(path.name, "rb", opener=lambda name, flags: os.open(name, flags | options, dir_fd=folder))
    finally:
        os.close(folder)


def _pieces(file: BinaryIO, first: int, last: int) -> Iterator[bytes]:
    with file:
        file.seek(first)
        left = last - first + 1
        while left and (piece := file.read(min(_PIECE_BYTES, left))):
            left -= len(piece)
            yield piece
