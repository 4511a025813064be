"""The files of docs/kubernetes, read as Kubernetes and Helm would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[1]
VALUES_FILE = REPOSITORY / "docs/kubernetes/values.yaml"
VALUES: dict[str, Any] = yaml.safe_load(VALUES_FILE.read_text())
CLAIM, ROLE, BINDING = yaml.safe_load_all((REPOSITORY / "docs/kubernetes/prerequisites.yaml").read_text())

NAMESPACE = "airflow"
IMAGE = f"{VALUES['defaultAirflowRepository']}:{VALUES['defaultAirflowTag']}"


def spark_files() -> dict[str, str]:
    """Name -> text of the files in the ConfigMap of Spark, as the chart writes them."""
    text: str = VALUES["extraConfigMaps"]["pulsar-advisor-spark"]["data"]
    text = text.replace("{{ .Values.defaultAirflowRepository }}:{{ .Values.defaultAirflowTag }}", IMAGE)
    files: dict[str, str] = yaml.safe_load(text.replace("{{ .Release.Namespace }}", NAMESPACE))
    return files


def mounted_claims(spec: dict[str, Any]) -> dict[str, str]:
    """Claim -> path, in the first container of a pod."""
    paths = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in spec["volumes"]
        if "persistentVolumeClaim" in volume
    }
    return {claim: paths[name] for name, claim in claims.items()}
