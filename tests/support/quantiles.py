"""A measurement's own samples beside what Prometheus makes of them by native histograms."""

import json
import math
import pathlib
import subprocess
import time

from prometheus import fetch, wait_until

CONFIG = """global: {{scrape_interval: 1s, scrape_timeout: 900ms}}
scrape_configs: [{{job_name: gridclock, static_configs: [{{targets: ['{target}']}}]}}]
"""
FLAGS = "--enable-feature=native-histograms,exemplar-storage"
SERIES = 'gridclock_kernel_duration_seconds{kernel="gelu"}'
BUCKET = 0.091  # Eight buckets to a power of two: a quantile is at most this part off.
LEAST = 459     # So many samples show a p99 at all, with 99 % confidence.


def measure(bin_folder, server):
    """Ascending, in seconds."""
    done = subprocess.run([pathlib.Path(bin_folder) / "gridclock", "--server", server.grpc, "bench", "gelu", "--shape",
                           "N=3000", "--variant", "simd", "--samples", "600", "--min-samples", "600", "--json"],
                          capture_output=True, text=True, check=True)
    samples = json.loads(done.stdout)["results"][0]["timing"]["samples_ns"]
    return sorted(ns / 1e9 for ns in samples)


def errors(prometheus, samples, parts=(0.5, 0.99)):
    """part -> how far Prometheus is off, relative to the exact quantile."""
    wait_until(lambda: prometheus.query(f"histogram_count({SERIES})") == len(samples), 60, SERIES)
    exact = {part: samples[math.ceil(part * len(samples)) - 1] for part in parts}

    def quantile(part):
        query = f"histogram_quantile({part}, {SERIES})"
        return wait_until(lambda: prometheus.query(query), 60, query)

    return {part: abs(quantile(part) / exact[part] - 1) for part in parts}


def exemplar_runs(prometheus):
    """The runs that the exemplars name."""
    now = time.time()
    found = prometheus.get("query_exemplars", query=SERIES, start=now - 600, end=now + 60)
    return [exemplar["labels"]["run_id"] for one in found for exemplar in one["exemplars"]]


def run_many(bin_folder, server, seconds=15):
    """More runs than a server shows, as under load; the number of the last."""
    subprocess.run([pathlib.Path(bin_folder) / "gridclock", "--server", server.grpc, "load", "square", "--shape", "N=4K",
                    "--rate", "100", "--seconds", str(seconds)], check=True, stdout=subprocess.DEVNULL)
    return json.loads(fetch(server.metrics, "/runs.json")[1])[0]["id"]
