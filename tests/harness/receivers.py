"""What receives messages on loopback: a mailbox, which speaks as much SMTP as a client needs to deliver a mail."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """The mails that arrived, the oldest first."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """A mailbox that any mail reaches, whomever it is for."""
    box = Mailbox()

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 here")
            for line in self.rfile:
                command = line.strip().upper()
                if command == b"DATA":
                    self._say("354 go on")
                    lines = iter(self.rfile.readline, b".\r\n")
                    mail = b"".join(line.removeprefix(b".") if line.startswith(b"..") else line for line in lines)
                    box.mails.append(message_from_bytes(mail, policy=policy.default))
                self._say("221 bye" if command == b"QUIT" else "250 done")
                if command == b"QUIT":
                    return

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        server.daemon_threads = True
        box.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield box
        finally:
            server.shutdown()
