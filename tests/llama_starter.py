"""Starts llama.cpp's server on a model file: `python FILE PORT MODEL JSON`, JSON being further parameters by name.

Runs under the Python of the environment that `make llama` makes, never under Cortex's. It stops by SIGTERM.
"""

import json
import sys
import time

import xllamacpp  # type: ignore[import-not-found]

params = xllamacpp.CommonParams()
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.model.path = sys.argv[2]
params.cpuparams.n_threads = 1
params.use_jinja = params.endpoint_slots = params.endpoint_props = True
params.warmup = params.fit_params = False
for name, value in json.loads(sys.argv[3]).items():
    *path, last = name.split(".")
    part = params
    for step in path:
        part = getattr(part, step)
    if not hasattr(part, last):
        sys.exit(f"no such parameter: {name}")
    setattr(part, last, value)
server = xllamacpp.Server(params)
while True:
    time.sleep(3_600)
