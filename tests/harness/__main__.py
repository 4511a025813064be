"""`python -m harness`: a live cluster in the background, to play with."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decisions.recording import RECORDINGS
from harness import background, load
from harness.admin_api import AdminApi
from harness.artifacts import DEFAULT_RELEASE, RELEASES, class_path
from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME, LOAD_MANAGERS
from harness.errors import HarnessError, LoadDidNotStart
from harness.permissions import record_permissions
from harness.record import capture_command, record
from harness.record_decisions import SCENARIOS, Scenario, record_decisions
from harness.record_scalable import RECORDED, record_scalable
from harness.skew import MARGIN_PERCENT, cpu_percents, wait_for_skew
from harness.workload import DEFAULT_SEED, WORKLOADS

REPOSITORY = Path(__file__).resolve().parents[2]
STATE = REPOSITORY / ".cache" / "cluster"
CLUSTER_STATE = STATE / "state.json"
LOAD_STATE = STATE / "load.json"
TOKEN_FILE = STATE / "admin.token"


def main() -> int:
    """Run one command; the exit code."""
    arguments = _parser().parse_args()
    command: Callable[[argparse.Namespace], None] = arguments.command
    try:
        command(arguments)
    except HarnessError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="harness", description="A real Pulsar cluster on this machine's loopback.")
    commands = parser.add_subparsers(required=True)

    for name, command, text in (
        ("up", _up, "start a cluster in the background"),
        ("serve", _serve, "the same in the foreground, until interrupted (what `up` starts)"),
    ):
        start = commands.add_parser(name, help=text)
        start.set_defaults(command=command)
        start.add_argument("--release", choices=RELEASES, default=DEFAULT_RELEASE)
        start.add_argument("--manager", choices=LOAD_MANAGERS, default="modular")
        start.add_argument("--brokers", type=int, default=3)
        start.add_argument("--set", action="append", type=_setting, default=[], metavar="KEY=VALUE", dest="settings")
        start.add_argument("--auth", choices=["token"])
        start.add_argument("--tls", action="store_true", help="speak TLS by a private authority, too")
        start.add_argument("--no-cpu-sensor", action="store_true", help="let all brokers report the host's CPU")

    commands.add_parser("down", help="stop cluster and load").set_defaults(command=_down)
    commands.add_parser("status", help="what is running, and the load of each broker").set_defaults(command=_status)

    generator = commands.add_parser("load", help="start a load in the background")
    generator.set_defaults(command=_load)
    generator.add_argument("--workload", choices=WORKLOADS, default="skewed", help="which broker has how much of it")
    generator.add_argument("--seed", type=int, default=DEFAULT_SEED)
    generator.add_argument("--stop", action="store_true", help="stop it")

    skew = commands.add_parser(
        "wait-for-skew", help=f"wait until one broker's CPU is over {MARGIN_PERCENT} points above the mean"
    )
    skew.set_defaults(command=lambda _: print(_percents(wait_for_skew(_admin(_running_cluster())))))

    recorder = commands.add_parser("record", help="capture a cluster of its own under load, for the demo")
    recorder.set_defaults(command=_record)
    recorder.add_argument("archive", type=Path, help="the tar file to write")

    scalable = commands.add_parser("record-scalable", help="capture segments before and after a split and a merge")
    scalable.set_defaults(command=lambda arguments: print(*record_scalable(arguments.folder), sep="\n"))
    scalable.add_argument("--folder", type=Path, default=RECORDED)

    decisions = commands.add_parser("record-decisions", help="record what brokers decide by themselves, for the tests")
    decisions.set_defaults(command=_record_decisions)
    decisions.add_argument(
        "scenarios", nargs="*", type=_scenario, metavar="NAME", help=f"all of them, or any of: {', '.join(SCENARIOS)}"
    )
    decisions.add_argument("--folder", type=Path, default=RECORDINGS)

    permissions = commands.add_parser("record-permissions", help="record who may do what, by release, for the docs")
    permissions.set_defaults(command=lambda _: record_permissions())

    generate = commands.add_parser("generate", help="the load in the foreground (what `load` starts)")
    generate.set_defaults(command=_generate)
    generate.add_argument("--admin-url", action="append", required=True)
    generate.add_argument("--service-url", required=True)
    generate.add_argument("--token-file", type=Path)
    generate.add_argument("--workload", choices=WORKLOADS, default="skewed")
    generate.add_argument("--seed", type=int, default=DEFAULT_SEED)
    generate.add_argument("--place", action="store_true", help="bring each bundle to its broker first")
    return parser


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} isn't KEY=VALUE")
    return key, value


def _scenario(name: str) -> Scenario:
    if name not in SCENARIOS:
        raise argparse.ArgumentTypeError(f"{name!r} isn't one of {', '.join(SCENARIOS)}")
    return SCENARIOS[name]


def _up(arguments: argparse.Namespace) -> None:
    if (state := background.running(CLUSTER_STATE)) is not None:
        raise HarnessError(
            f"A cluster is running already (process {state['process']['pid']}); stop it with `down` first."
        )
    class_path(arguments.release)  # here, where its failure and its duration are seen
    background.stop(LOAD_STATE)
    shutil.rmtree(STATE, ignore_errors=True)
    STATE.mkdir(parents=True)
    options = sys.argv[sys.argv.index("up") + 1 :]
    log = STATE / "serve.log"
    server = background.start(["serve", *options], log)
    try:
        while not CLUSTER_STATE.exists():
            if server.poll() is not None:
                raise HarnessError(f"The cluster did not start; {log} says:\n{log.read_text(encoding='utf-8')}")
            time.sleep(0.2)
    except BaseException:
        server.terminate()
        raise
    _status(arguments)


def _serve(arguments: argparse.Namespace) -> None:
    options = ClusterOptions(
        release=arguments.release,
        load_manager=arguments.manager,
        brokers=arguments.brokers,
        settings=dict(arguments.settings),
        token_authentication=arguments.auth == "token",
        tls=arguments.tls,
        cpu_sensor=not arguments.no_cpu_sensor,
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    STATE.mkdir(parents=True, exist_ok=True)
    try:
        with LiveCluster(options, STATE / "run") as cluster:
            if cluster.tokens:
                TOKEN_FILE.touch(mode=0o600)
                TOKEN_FILE.write_text(cluster.tokens.super_user, encoding="utf-8")
            background.remember(
                CLUSTER_STATE,
                os.getpid(),
                {
                    "children": cluster.process_ids,
                    "release": options.release,
                    "manager": options.load_manager,
                    "admin_urls": cluster.admin_urls,
                    "tls_admin_urls": [broker.tls_admin_url for broker in cluster.brokers],
                    "ca_file": str(cluster.certificates.authority) if cluster.certificates else None,
                    "zookeeper": cluster.zookeeper,
                    "service_url": cluster.service_url,
                    "token_file": str(TOKEN_FILE) if cluster.tokens else None,
                    "has_cpu_skew": cluster.has_cpu_skew,
                    "directory": str(cluster.directory),
                },
            )
            signal.pause()
    finally:
        CLUSTER_STATE.unlink(missing_ok=True)
        TOKEN_FILE.unlink(missing_ok=True)


def _down(_: argparse.Namespace) -> None:
    for state_file, what in ((LOAD_STATE, "load"), (CLUSTER_STATE, "cluster")):
        print(f"{what} stopped" if background.stop(state_file) else f"no {what} was running")


def _load(arguments: argparse.Namespace) -> None:
    if arguments.stop:
        print("load stopped" if background.stop(LOAD_STATE) else "no load was running")
        return
    state = _running_cluster()
    if background.running(LOAD_STATE) is not None:
        raise HarnessError("The load is running already; stop it with `load --stop` first.")
    log = STATE / "load.log"
    generator = background.start(
        load.generator_arguments(
            state["admin_urls"],
            state["service_url"],
            token_file=state["token_file"],
            workload=arguments.workload,
            seed=arguments.seed,
            placed=state["manager"] != "simple",
        ),
        log,
    )
    background.remember(LOAD_STATE, generator.pid, {"seed": arguments.seed})
    try:
        print(load.wait_until_steady(generator, log))
    except LoadDidNotStart:
        background.stop(LOAD_STATE)
        raise


def _record(arguments: argparse.Namespace) -> None:
    record(arguments.archive)
    print(f"{arguments.archive}: {arguments.archive.stat().st_size} bytes")


def _record_decisions(arguments: argparse.Namespace) -> None:
    for scenario in arguments.scenarios or SCENARIOS.values():
        print(record_decisions(scenario, arguments.folder), flush=True)


def _generate(arguments: argparse.Namespace) -> None:
    token = arguments.token_file.read_text(encoding="utf-8") if arguments.token_file else None
    admin = AdminApi(arguments.admin_url, token)
    workload = WORKLOADS[arguments.workload](arguments.seed)
    load.generate(admin, arguments.service_url, workload=workload, seed=arguments.seed, placed=arguments.place)


def _status(_: argparse.Namespace) -> None:
    state = _running_cluster()
    print(f"Pulsar {state['release']}, {state['manager']} load manager, {len(state['admin_urls'])} brokers")
    print(f"  admin URLs   {' '.join(state['admin_urls'])}")
    print(f"  ZooKeeper    {state['zookeeper']}")
    print(f"  service URL  {state['service_url']}")
    print(f"  directory    {state['directory']}")
    print(f"  CPU          {'differs by message rate' if state['has_cpu_skew'] else 'the same for all (host)'}")
    print(f"  load         {'running' if background.running(LOAD_STATE) else 'none'}")
    print(f"  CPU usage    {_percents(cpu_percents(_admin(state)))}")
    print("\n" + " ".join(_capture_command(state)))


def _capture_command(state: dict[str, Any]) -> list[str]:
    urls = state["tls_admin_urls"] if state["ca_file"] else state["admin_urls"]
    command = capture_command("data", CLUSTER_NAME, urls, state["zookeeper"])
    command[0] = os.path.relpath(command[0])
    command += ["--tls-ca-file", state["ca_file"]] if state["ca_file"] else []
    return command + (["--token-file", state["token_file"]] if state["token_file"] else [])


def _percents(usage: dict[str, float]) -> str:
    return "  ".join(f"{broker_id} {percent:.0f} %" for broker_id, percent in usage.items())


def _admin(state: dict[str, Any]) -> AdminApi:
    token = Path(state["token_file"]).read_text(encoding="utf-8") if state["token_file"] else None
    return AdminApi(state["admin_urls"], token)


def _running_cluster() -> dict[str, Any]:
    state = background.running(CLUSTER_STATE)
    if state is None:
        raise HarnessError("No cluster is running; start one with `python -m harness up` (or `make cluster-up`).")
    return state


if __name__ == "__main__":
    sys.exit(main())
