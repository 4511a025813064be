"""Locations made to mean one host to whoever judges them and another to whoever connects."""

from __future__ import annotations

from hypothesis import strategies as st

_PIECES = (
    *("http://", "https://", "HTTP://", "http:", "//", "/", "\\", "\\\\", "/\\", "///", ":", "@", "#", "?", "&", "%"),
    *("..", "/../", "%2e%2e", "%40", "%5c", "%2f", "%00", "%0d%0a", ";", "[", "]", "[::1]", "[::ffff:7f00:1]", "."),
    *("\t", "\n", "\r", "\r\n", "\x00", "\x0b", "\x1f", "\x7f", " ", "\x85", "\xa0", "\xad", "user", "user:password@"),
    *("0x7f.1", "2130706433", "127.1", "localhost", "xn--", "80", "8080", "99999", "-1", "0", "x" * 300),
)


def locations(known: str, evil: str) -> st.SearchStrategy[str]:
    """Locations from the pieces that parsers quarrel about, around two `host:port`s."""
    piece = st.sampled_from((*_PIECES, known, evil, known.partition(":")[0], evil.partition(":")[0]))
    begin = st.sampled_from(("http://", "https://", "//", "/", "", f"http://{evil}", f"http://{known}"))
    rest = st.lists(piece, max_size=8).map("".join)
    path = st.sampled_from(("", "/x", "/x?y", f"/x?u=http://{evil}/"))
    return st.builds("{}{}{}".format, begin, rest, path)
