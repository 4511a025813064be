# One image for Airflow and for Spark: driver and workers need the same Python and the same packages.
# The project keeps the layout of its repository, so dags/ and plugins/ find jobs/ where they do everywhere else.
FROM apache/airflow:slim-3.3.2-python3.12

USER root
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && apt-get clean \
    && rm -rf /var/lib/apt/lists/* \
    # A new named volume takes over the owner of the folder it is mounted on.
    && install -d -o airflow -g root -m 0775 /opt/pulsar-advisor /opt/airflow/auth /opt/airflow/logs /var/lib/pulsar-advisor

USER airflow
WORKDIR /opt/pulsar-advisor
COPY --chown=airflow:root requirements.txt requirements-build.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt -r requirements-build.txt
COPY --chown=airflow:root . .
# Without isolation the builder is the locked one; with it, pip would fetch whatever the index holds today.
RUN pip install --no-cache-dir --no-deps --no-build-isolation -e .

ENV AIRFLOW__CORE__DAGS_FOLDER=/opt/pulsar-advisor/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/pulsar-advisor/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=false \
    PYSPARK_PYTHON=python
