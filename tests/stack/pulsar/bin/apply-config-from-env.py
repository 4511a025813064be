#!/usr/bin/env python3
"""Sets the keys of a configuration file that are also environment variables, as Pulsar's script of this name does."""

import os
import sys
from pathlib import Path

for file in map(Path, sys.argv[1:]):
    lines = [line for line in file.read_text().splitlines() if "=" in line]
    settings = dict(line.split("=", 1) for line in lines)
    known = {key: os.environ.get(key, value) for key, value in settings.items()}
    file.write_text("".join(f"{key}={value}\n" for key, value in known.items()))
