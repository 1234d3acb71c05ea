"""Schedules of GPU kernels: the cost model's, and edits of it.

An edit changes one or a few numbers of the printed schedule, of its first nest.
"""
import copy
import json

import moa_testing as mt

# Registers per thread of consumers and producer, by consumer warpgroups.
REGISTERS = {1: (256, 40), 2: (240, 24), 3: (160, 32), 4: (112, 32)}

# What leaves every element's operations as they are: in which order blocks run,
# how far copies run ahead, what is in flight, who has which registers, how many
# rows share a block where none is computed with another.
EXACT = {"stage", "overlap", "order", "group", "consumer", "producer", "thread", "shares"}
# Edits that leave every element's operations as those of other edits have them.
SAME = {"shares": "keys-32", "shares-serial": "keys-32"}

# (example, settings): names of schedules and their edits.
CASES = {
    ("sdpa", (("D", 64), ("T", "bf16"))): {
        "one-warpgroup": {"warpgroup": 1},
        "two-warpgroups": {"warpgroup": 2},
        "four-warpgroups": {"warpgroup": 4, "shared": 64},
        "keys-32": {"shared": 32},
        "keys-64": {"shared": 64},
        "keys-256": {"warpgroup": 1, "shared": 256},
        "shares": {"shared": 32, "shares": 7},
        "shares-serial": {"shared": 32, "overlap": False, "shares": 14},
        "one-stage": {"stage": 1, "overlap": False},
        "three-stages": {"stage": 3},
        "serial": {"overlap": False},
        "descending": {"order": "descending"},
        "groups": {"group": 1000000},
        "never-late": {"lazy": 0},
    },
    ("causal", (("D", 128), ("T", "bf16"))): {
        "one-warpgroup": {"warpgroup": 1},
        "three-warpgroups": {"warpgroup": 3, "shared": 32},
        "keys-32": {"shared": 32},
        "keys-64": {"shared": 64},
        "three-stages": {"shared": 64, "stage": 3},
        "one-stage": {"stage": 1, "overlap": False},
        "ascending": {"order": "ascending"},
        "head-by-head": {"group": 0},
        "groups": {"group": 2200000},
        "ascending-groups": {"order": "ascending", "group": 1100000},
        "later": {"lazy": 20},
        "registers": {"consumer": 232, "producer": 40},
    },
    ("causal", (("D", 16), ("T", "f32"))): {
        "threads-32": {"thread": 32},
        "threads-512": {"thread": 512},
    },
}


def printed(example, settings):
    """The schedule the compiler chooses, as a value."""
    sets = [w for k, v in settings for w in ("--set", f"{k}={v}")]
    made = mt.tool("moa-codegen", mt.example(example), *sets, "--target=cuda",
                   "--schedule=print")
    if made.returncode:
        raise RuntimeError(f"moa-codegen {example}: {made.stderr}")
    return json.loads(made.stdout)


def edited(schedule, edits):
    """A schedule with some of its numbers changed; new warpgroups get the registers
    that go with them."""
    schedule = copy.deepcopy(schedule)
    nest = schedule["nests"][0]
    places = [nest["axes"][-1], nest["folds"][0], nest.get("pipeline", {})]
    if "warpgroup" in edits:
        consumer, producer = REGISTERS[edits["warpgroup"]]
        edits = {"consumer": consumer, "producer": producer, **edits}
    for key, value in edits.items():
        place = next((p for p in places if key in p), places[-1])
        place[key] = value
    return schedule


def is_exact(edits):
    """Whether the edits leave every bit as it is."""
    return set(edits) <= EXACT
