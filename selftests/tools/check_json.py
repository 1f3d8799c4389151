#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Check the JSON of a tool.

    check_json.py benchmark FILE [OPERATION...]   these operations, all right
    check_json.py wrong FILE                      some element is wrong
    check_json.py links FILE                      agrees with what sysfs says

'-' as FILE is standard input. Ends with 1 and a sentence when it is not so.
"""

import json
import pathlib
import platform
import sys

OPERATIONS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "sendrecv",
              "barrier"]
IN_PLACE = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}
FACTORS = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
           "reduce_scatter": lambda n: (n - 1) / n}
IB = pathlib.Path("/sys/class/infiniband")


def check(condition, text):
    if not condition:
        sys.exit(f"check_json: {text}")


def load(name):
    with (sys.stdin if name == "-" else open(name)) as file:
        return json.load(file)


def line(path):
    return path.read_text().strip()


def check_environment(env):
    check(env["kernel"] == platform.release(), f"kernel {env['kernel']}")
    loaded = pathlib.Path("/sys/module/hcomm/version")
    check(env["module"] == (line(loaded) if loaded.exists() else None), f"module {env['module']}")
    check(env["library"], "no version of the library")
    names = sorted(p.name for p in IB.iterdir()) if IB.exists() else []
    check(sorted(d["name"] for d in env["devices"]) == names, f"devices {env['devices']}")
    soft = any(n.startswith(("rxe", "siw")) for n in names)
    check(env["software_rdma"] is soft, f"software_rdma {env['software_rdma']}")
    tcg = "QEMU TCG" in pathlib.Path("/proc/cpuinfo").read_text()
    check(env["emulated"] is tcg, f"emulated {env['emulated']}")


def check_sample(row, form):
    sample = row[form]
    wants = form == "out_of_place" or row["op"] in IN_PLACE
    check((sample is not None) == wants or "bucket" in row, f"{form} of {row['op']}")
    if not sample:
        return
    alone = row["op"] == "barrier" and row["ranks"] == 1
    check(sample["wrong"] == (None if alone else 0), f"{sample['wrong']} wrong: {row}")
    check(sample["time_us"] > 0, f"time of {row}")
    algbw = row["bytes"] / sample["time_us"] / 1e3
    check(abs(sample["algbw_GBps"] - algbw) <= 1e-4 * algbw, f"algbw of {row}")
    factor = FACTORS.get(row["op"], lambda n: 1)(row["ranks"])
    busbw = sample["algbw_GBps"] * factor
    check(abs(sample["busbw_GBps"] - busbw) <= 1e-4 * busbw, f"busbw of {row}")


def check_row(row, nranks):
    for key in ("op", "type", "redop", "root", "bytes", "count", "ranks", "buffers"):
        check(key in row, f"no {key} in {row}")
    check(row["ranks"] == nranks, f"ranks of {row}")
    check((row["redop"] is not None) == ("reduce" in row["op"]), f"redop of {row}")
    for form in ("out_of_place", "in_place"):
        check_sample(row, form)


def benchmark(data, operations):
    check(data["schema_version"] == 1, "schema_version")
    check(data["error"] is None, f"error {data['error']}")
    check_environment(data["environment"])
    check([r["rank"] for r in data["ranks"]] == list(range(len(data["ranks"]))), "ranks")
    for row in data["results"]:
        check_row(row, len(data["ranks"]))
    check(data["wrong"] == 0 and data["out_of_bounds_bytes"] == 0, "sums of what is wrong")
    wanted = OPERATIONS if operations == ["all"] else operations
    found = {row["op"] for row in data["results"]}
    check(found == set(wanted), f"operations {sorted(found)}, not {wanted}")


def wrong(data):
    check(data["wrong"] or data["out_of_bounds_bytes"], "nothing is wrong")


def check_port(port):
    where = IB / port["device"] / "ports" / str(port["port"])
    state = line(where / "state").split(": ")[1].lower()
    check(port["state"] == state, f"state {port['state']}, not {state}")
    check(port["ok"] == (state == "active"), f"verdict of {port}")
    check(port["speed_Gbps"] == float(line(where / "rate").split()[0]), f"speed of {port}")
    name = line(where / "gid_attrs/ndevs/0")
    net = pathlib.Path("/sys/class/net") / name
    check(port["netdev"]["name"] == name, f"netdev of {port}, not {name}")
    check(port["netdev"]["mtu"] == int(line(net / "mtu")), f"MTU of {port}")
    check(port["netdev"]["carrier"] == (line(net / "operstate") != "down"), f"carrier of {port}")
    check(port["gid_types"] == line(where / "gid_attrs/types/0"), f"GID types of {port}")
    check(port["rdma_mtu"] < port["netdev"]["mtu"], f"RDMA MTU of {port}")
    resent = int(line(where / "hw_counters/completer_retry_err"))
    check(port["retransmissions"] <= resent, f"retransmissions of {port}, now {resent}")
    sent = int(line(net / "statistics/tx_bytes"))
    check(port["netdev"]["tx_bytes"] <= sent, f"bytes of {port}, now {sent}")


def links(data):
    check(data["schema_version"] == 1, "schema_version")
    there = sorted((d.name, int(p.name)) for d in IB.iterdir() for p in (d / "ports").iterdir())
    check([(p["device"], p["port"]) for p in data["ports"]] == there, f"ports are {there}")
    for port in data["ports"]:
        check_port(port)
    bad = sum(not x["ok"] for x in data["ports"] + data["paths"])
    check(data["failed"] == bad, f"failed {data['failed']}, not {bad}")
    loaded = pathlib.Path("/sys/module/hcomm").exists()
    check(data["module_loaded"] is loaded, "module_loaded")


def main():
    form, name, *rest = sys.argv[1:]
    data = load(name)
    if form == "benchmark":
        benchmark(data, rest)
    elif form == "wrong":
        wrong(data)
    else:
        links(data)


main()
