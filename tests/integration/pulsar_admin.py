"""A `pulsar-admin` that takes exactly the options of Pulsar's own, and calls the admin API with them.

Source: `CmdNamespaces` and `CmdBrokers` of 4.0 (picocli: a list is not divided at its commas), and `PulsarAdminTool`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

TOOL = argparse.ArgumentParser("pulsar-admin", allow_abbrev=False)
TOOL.add_argument("--admin-url", required=True)
TOOL.add_argument("--auth-plugin")
TOOL.add_argument("--auth-params")
_groups = TOOL.add_subparsers(dest="group", required=True)
_brokers = _groups.add_parser("brokers", allow_abbrev=False).add_subparsers(dest="verb", required=True)
_owned = _brokers.add_parser("namespaces", allow_abbrev=False)
_owned.add_argument("cluster")
_owned.add_argument("-u", "--url", required=True)
_namespaces = _groups.add_parser("namespaces", allow_abbrev=False).add_subparsers(dest="verb", required=True)
_unload = _namespaces.add_parser("unload", allow_abbrev=False)
_unload.add_argument("-b", "--bundle")
_unload.add_argument("-d", "--destinationBroker")
_unload.add_argument("namespace")
_split = _namespaces.add_parser("split-bundle", allow_abbrev=False)
_split.add_argument("-b", "--bundle")
_split.add_argument("-u", "--unload", action="store_true")
_split.add_argument("-san", "--split-algorithm-name")
_split.add_argument("-sb", "--split-boundaries", type=int, action="append", default=[])
_split.add_argument("namespace")


def main() -> None:
    """Make the call of a command line."""
    given = TOOL.parse_args()
    if given.verb == "namespaces":
        owned = json.loads(_call(given, "GET", f"brokers/{given.cluster}/{given.url}/ownedNamespaces"))
        for bundle, status in owned.items():
            print(f"{bundle}    {status}")
        return
    if not re.fullmatch(r"[-=:.\w]+/[-=:.\w]+", given.namespace):
        sys.exit(f"invalid namespace: {given.namespace}")
    path = f"namespaces/{given.namespace}/{given.bundle}"
    if given.verb == "unload":
        to = f"?destinationBroker={urllib.parse.quote(given.destinationBroker)}" if given.destinationBroker else ""
        _call(given, "PUT", f"{path}/unload{to}")
        return
    query = f"unload={str(given.unload).lower()}&splitAlgorithmName={given.split_algorithm_name}"
    _call(given, "PUT", f"{path}/split?{query}", json.dumps(given.split_boundaries).encode())


def _call(given: argparse.Namespace, method: str, path: str, body: bytes | None = None) -> bytes:
    url = f"{given.admin_url}/admin/v2/{path}"
    headers = {}
    if given.auth_params:
        headers["Authorization"] = "Bearer " + urllib.request.urlopen(given.auth_params).read().decode().strip()
    while True:
        try:
            request = urllib.request.Request(url, body, headers, method=method)
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            if error.code != 307:
                sys.exit(f"HTTP {error.code} {error.read().decode()}")
            url = error.headers["Location"]


if __name__ == "__main__":
    main()
