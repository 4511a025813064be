"""The part of a Kubernetes API that a Spark driver calls, on loopback; a pod's first container is a local process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Manifest = dict[str, Any]

POD_IP = "127.0.0.1"
_VERBS = {"GET": "get", "PATCH": "patch", "DELETE": "delete"}
_VERBS_OF_ALL = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass
class KubernetesApi:
    """What was asked of it so far, and what exists in its one namespace."""

    folder: Path
    """Of the pods: their logs, and what they write to emptyDir volumes."""
    url: str = ""
    calls: set[tuple[str, str]] = field(default_factory=set)
    """(verb, resource), as in the rules of a Role."""
    created: list[Manifest] = field(default_factory=list)
    """Everything that was ever created, oldest first."""
    existing: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    """(resource, name) -> manifest."""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """By the name of the pod."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def create(self, namespace: str, resource: str, manifest: Manifest) -> Manifest:
        """Keep a manifest. A pod with containers runs at once."""
        with self.changed:
            number = len(self.created) + 1
            manifest["metadata"] |= {"namespace": namespace, "uid": str(number), "resourceVersion": str(number)}
            if resource == "pods":
                ready = {"type": "Ready", "status": "True"}
                manifest["status"] = {"phase": "Running", "podIP": POD_IP, "conditions": [ready]}
            self.created.append(manifest)
            self.existing[resource, manifest["metadata"]["name"]] = manifest
            self.changed.notify_all()
        if manifest.get("spec", {}).get("containers"):
            self.processes[manifest["metadata"]["name"]] = self._started(manifest)
        return manifest

    def items(self, resource: str, selector: str = "") -> list[Manifest]:
        """What exists of a resource, with these labels (`name=value,name!=value`)."""
        terms = [re.fullmatch(r"([^!=]+)(!?)=(.*)", term) for term in selector.split(",") if term]
        assert all(terms), selector
        with self.changed:
            return [
                manifest
                for (kind, _), manifest in self.existing.items()
                if kind == resource and all(_has(manifest, *term.groups()) for term in terms if term)
            ]

    def delete(self, resource: str, name: str) -> Manifest:
        """Forget a manifest, and end the process of a pod."""
        if name in self.processes:
            self.processes[name].kill()
        with self.changed:
            return self.existing.pop((resource, name))

    def _started(self, pod: Manifest) -> subprocess.Popen[bytes]:
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]
        scratch = {volume["name"] for volume in pod["spec"].get("volumes", []) if "emptyDir" in volume}
        places = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"] if mount["name"] in scratch}
        fields = {"status.podIP": POD_IP, "metadata.name": name}
        variables = {}
        for variable in container["env"]:
            value = variable.get("value") or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            variables[variable["name"]] = str(self.folder / name / places[value]) if value in places else value
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [*container["command"], *container["args"]],
                env=image_variables() | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def _has(manifest: Manifest, label: str, negated: str, value: str) -> bool:
    found: str | None = manifest["metadata"].get("labels", {}).get(label)
    return (found == value) != bool(negated)


def image_variables() -> dict[str, str]:
    """The variables of this process, as in an image: Python and Spark's commands on the path, no other Spark chosen."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK", "KUBE"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", os.defpath)))
    return {**kept, "PATH": path, "PYSPARK_PYTHON": sys.executable}


@contextmanager
def kubernetes_api(folder: Path) -> Iterator[KubernetesApi]:
    """An API that ends with the block, together with the processes of its pods."""
    api = KubernetesApi(folder)

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self, document: Manifest, status: HTTPStatus = HTTPStatus.OK) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _watch(self, resource: str, selector: str) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            sent: set[str] = set()
            while not ended.is_set():
                with api.changed:
                    new = [each for each in api.items(resource, selector) if each["metadata"]["uid"] not in sent]
                    if not new:
                        api.changed.wait(1)
                for manifest in new:
                    sent.add(manifest["metadata"]["uid"])
                    line = json.dumps({"type": "ADDED", "object": manifest}).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                    self.wfile.flush()

        def _handle(self) -> None:
            address = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            namespace, resource, name = [*address.path.partition("/namespaces/")[2].split("/"), "", ""][:3]
            query = dict(parse_qsl(address.query))
            selector = query.get("labelSelector", "")
            verb = _VERBS[self.command] if name else _VERBS_OF_ALL[self.command]
            if query.get("watch") == "true":
                verb = "watch"
            api.calls.add((verb, resource))
            kind = {"pods": "Pod", "configmaps": "ConfigMap"}.get(resource, "")
            found = api.existing.get((resource, name))
            if verb == "watch":
                # A refused WebSocket makes the client watch over plain HTTP.
                self._answer({}) if "Upgrade" in self.headers else self._watch(resource, selector)
            elif verb == "create":
                self._answer(api.create(namespace, resource, json.loads(body)), HTTPStatus.CREATED)
            elif verb == "list":
                items = {"kind": f"{kind}List", "apiVersion": "v1", "items": api.items(resource, selector)}
                self._answer(items | {"metadata": {"resourceVersion": str(len(api.created))}})
            elif verb == "deletecollection":
                for each in api.items(resource, selector):
                    api.delete(resource, each["metadata"]["name"])
                self._answer({"kind": "Status", "apiVersion": "v1", "status": "Success"})
            elif found is None:
                missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}
                self._answer(missing, HTTPStatus.NOT_FOUND)
            else:
                self._answer(api.delete(resource, name) if verb == "delete" else found)

        do_GET = do_POST = do_PATCH = do_DELETE = _handle

        def log_message(self, *words: object) -> None:
            pass

    ended = threading.Event()
    server = ThreadingHTTPServer((POD_IP, 0), Answers)
    server.daemon_threads = True
    api.url = f"http://{POD_IP}:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield api
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        for process in api.processes.values():
            process.kill()
            process.wait()
