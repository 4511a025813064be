"""Who may see and do what: Airflow's login and its permissions on our DAGs."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from airflow.sdk import conf
from fastapi import Depends, Form, HTTPException, Request
from itsdangerous import BadData, URLSafeTimedSerializer

from pulsar_advisor.execution.person import Person
from pulsar_advisor_airflow.airflow_internals import GetUserDep, requires_access_dag
from pulsar_advisor_airflow.clusters import Cluster, clusters, labelled
from pulsar_advisor_airflow.ledger import AUTHENTICATED_BY

RECOMMENDING: Final = "pulsar_recommend"
"""Who may see a cluster's DAG of this name may see its pages."""
WRITING: Final = "pulsar_rebalance"
"""Who may edit a cluster's DAG of this name may propose its plans, and pause and stop its runs."""
ROLLING: Final = "pulsar_rolling_restart"
"""Who may edit a cluster's DAG of this name may say that a broker was restarted, and pause and end its rolls."""

TOKEN_LIFE_S: Final = 3600


def visible(request: Request, user: GetUserDep) -> list[Cluster]:
    """The clusters whose pages the user may see. Without a login: 401."""
    return [each for each in clusters().values() if _permits("GET", labelled(RECOMMENDING, each), request, user)]


def readable(cluster: str, request: Request, user: GetUserDep) -> Cluster:
    """The cluster of the address. Without a login: 401; without the permission: 403; if there is none: 404."""
    found = clusters().get(cluster)
    if found is None:
        raise HTTPException(404, "there is no such cluster")
    requires_access_dag(method="GET", param_dag_id=labelled(RECOMMENDING, found))(request, user)
    return found


Readable = Annotated[Cluster, Depends(readable)]


def may_write(cluster: Readable, request: Request, user: GetUserDep) -> bool:
    """Whether the user may propose plans of the cluster, and pause and stop its runs."""
    return _permits("PUT", labelled(WRITING, cluster), request, user)


def form_token(request: Request, user: GetUserDep) -> str:
    """A proof, for the forms of the page at this address, that this user was shown it."""
    return _signer().dumps([user.get_id(), request.url.path])


def steered_by(cluster: Readable, request: Request, user: GetUserDep, token: Annotated[str, Form()] = "") -> Person:
    """The user who sent a form. 403 if they may not write to this cluster, or if it isn't the form we showed them.

    Another site can make a browser send a form with the user's cookie, but can't read the token on our page.
    """
    return _sender(WRITING, cluster, request, user, token)


def rolled_by(cluster: Readable, request: Request, user: GetUserDep, token: Annotated[str, Form()] = "") -> Person:
    """As `steered_by`, for a cluster's rolls."""
    return _sender(ROLLING, cluster, request, user, token)


def reported_by(cluster: Readable, request: Request, user: GetUserDep, token: Annotated[str, Form()] = "") -> Person:
    """As `rolled_by`, or a program without a form: its login is in a header, which no other site can have sent."""
    scheme, _, login = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not login:  # without one, Airflow takes the login from the cookie
        return _sender(ROLLING, cluster, request, user, token)
    requires_access_dag(method="PUT", param_dag_id=labelled(ROLLING, cluster))(request, user)
    return Person(user.get_name(), AUTHENTICATED_BY)


def may_roll(cluster: Readable, request: Request, user: GetUserDep) -> bool:
    """Whether the user may say that brokers of the cluster were restarted, and pause and end its rolls."""
    return _permits("PUT", labelled(ROLLING, cluster), request, user)


def _sender(base: str, cluster: Cluster, request: Request, user: GetUserDep, token: str) -> Person:
    requires_access_dag(method="PUT", param_dag_id=labelled(base, cluster))(request, user)
    path = request.url.path
    page, _, _ = path.rpartition("/")
    try:
        shown = _signer().loads(token, max_age=TOKEN_LIFE_S)
    except BadData:
        shown = None
    if shown not in ([user.get_id(), page], [user.get_id(), path]):
        raise HTTPException(403, "this form was not shown to you, or is more than an hour old: open the page again")
    return Person(user.get_name(), AUTHENTICATED_BY)


def _permits(method: Literal["GET", "PUT"], dag: str, request: Request, user: GetUserDep) -> bool:
    try:
        requires_access_dag(method=method, param_dag_id=dag)(request, user)
    except HTTPException:
        return False
    return True


def _signer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(conf.get("api", "secret_key"), salt="pulsar-advisor-pages")


Visible = Annotated[list[Cluster], Depends(visible)]
MayWrite = Annotated[bool, Depends(may_write)]
MayRoll = Annotated[bool, Depends(may_roll)]
FormToken = Annotated[str, Depends(form_token)]
SteeredBy = Annotated[Person, Depends(steered_by)]
RolledBy = Annotated[Person, Depends(rolled_by)]
ReportedBy = Annotated[Person, Depends(reported_by)]
