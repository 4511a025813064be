# One image for Airflow and for Spark: driver and executors need the same Python and the same packages.
# The project keeps the layout of its repository, so dags/ and plugins/ find jobs/ where they do everywhere else.
# A digest pins the base: docker build --build-arg BASE_IMAGE=debian:bookworm-slim@sha256:…
ARG BASE_IMAGE=debian:bookworm-slim
FROM ${BASE_IMAGE}

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]

# Not pinned: the packages of a stable Debian change for security only, and old versions leave the archive.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        ca-certificates curl dumb-init openjdk-17-jre-headless procps python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 50000 --gid root --create-home --home-dir /opt/airflow airflow \
    # A new named volume takes over the owner of the folder that it is mounted on.
    && install -d -o airflow -g root -m 0770 /opt/airflow/logs /var/lib/pulsar-advisor \
    && python3 -m venv /opt/venv

ENV PATH=/opt/venv/bin:${PATH}
WORKDIR /opt/pulsar-advisor

# Another package index, or the certificate of a proxy, comes as a secret and stays out of the image: docs/compose.md.
# Without isolation the builder is the locked one; with it, pip would fetch whatever the index holds today.
COPY requirements.txt requirements-build.txt requirements-image.txt ./
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.pem \
    pip install --no-cache-dir --require-hashes -r requirements-build.txt \
    && pip install --no-cache-dir --require-hashes --no-build-isolation --use-pep517 \
        -r requirements.txt -r requirements-image.txt

COPY . .
# Few partitions suit Pulsar clusters up to some hundred thousand topics: docs/spark.md.
# The script expands what the single quotes keep.
# hadolint ignore=SC2016
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e . \
    && python -m compileall -q dags jobs plugins \
    && install -d /etc/spark \
    && printf '%s\n' 'spark.sql.shuffle.partitions 8' 'spark.ui.enabled false' > /etc/spark/spark-defaults.conf \
    # With a secret of Spark, its processes talk to those that know it, encrypted. It is on no command line, which
    # everybody could read. Where there is one, the master takes no applications over HTTP, and its page ends none.
    && printf '%s\n' '#!/bin/bash' 'set -euo pipefail' \
        'if [ -r /run/secrets/spark_secret ]; then' \
        '  export SPARK_CONF_DIR=/opt/airflow/spark-conf' \
        '  install -d -m 0700 "$SPARK_CONF_DIR"' \
        '  { cat /etc/spark/spark-defaults.conf' \
        '    echo spark.authenticate true' \
        '    echo "spark.authenticate.secret $(cat /run/secrets/spark_secret)"' \
        '    echo spark.network.crypto.enabled true' \
        '    echo spark.network.crypto.cipher AES/GCM/NoPadding' \
        '    echo spark.network.crypto.authEngineVersion 2' \
        '    echo spark.master.rest.enabled false' \
        '    echo spark.ui.killEnabled false' \
        '  } >"$SPARK_CONF_DIR/spark-defaults.conf"' \
        'fi' \
        'exec "$@"' > /usr/local/bin/entrypoint \
    && chmod 0755 /usr/local/bin/entrypoint

USER 50000:0
ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/pulsar-advisor/dags \
    AIRFLOW__CORE__LOAD_EXAMPLES=false \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/pulsar-advisor/plugins \
    PYSPARK_PYTHON=/opt/venv/bin/python \
    SPARK_CONF_DIR=/etc/spark \
    SPARK_DAEMON_MEMORY=256m
ENTRYPOINT ["/usr/bin/dumb-init", "--", "entrypoint"]
