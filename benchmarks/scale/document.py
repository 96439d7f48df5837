"""The record and what the simulation made of it → docs/SCALE.md and its figure."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.scale.inputs import Engine, Inputs
from benchmarks.scale.scenarios import ASSUMED, CRITERION, DOCUMENTS, FILES, Check, Scenario, Stream, limits

_WORDS = {"short": "20 words", "long": "300 words"}
_BLUE, _ORANGE, _GREY = "#0072b2", "#e69f00", "#999999"  # told apart by colour-blind readers too


def markdown(
    record: dict[str, Any],
    inputs: Inputs,
    checks: Sequence[Check],
    scenarios: Sequence[Scenario],
    streams: Sequence[Stream],
) -> str:
    """The whole page."""
    parts = [
        _beginning(record),
        _verdict(checks),
        _stages(inputs),
        _start_up(inputs),
        _checks(checks),
        _assumptions(inputs),
        _scenarios(inputs, scenarios, checks),
        _bottlenecks(inputs, scenarios),
        _streams(streams),
        _packing(inputs),
        _left_out(),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _table(head: str, rows: Iterable[Sequence[str]]) -> str:
    names = head.split(" | ")
    lines = [f"| {head} |", "|" + "---|" + "---:|" * (len(names) - 1), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def _beginning(record: dict[str, Any]) -> str:
    machine = record["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items() if name != "precision")
    load = median(one["load"] for one in record["rounds"])
    return f"""# What scale costs

Written by `make scale-report` (`python -m benchmarks.scale`) from `benchmarks/scale/measured.json`; no number here was
typed. `make scale-page` writes it again from that record without measuring.

Measured in {len(record["rounds"])} rounds at commit {machine["commit"]} on {machine["cores"]} cores ({machine["cpu"]}),
{machine["gigabytes"]} GB; {versions}.
Text is made up (Zipf's law, seed {record["config"]["seed"]}), the network is the paper's (width 64, vectors of 300
numbers). Others used the machine too: its load was {load:.1f} when rounds began (median). So stages are counted in CPU
seconds, and how many cores others used is recorded beside every whole job."""


def _verdict(checks: Sequence[Check]) -> str:
    worst = max(checks, key=lambda one: abs(one.error))
    passed, all_of_them = sum(one.passed for one in checks), len(checks)
    said = (
        f"**The simulation is within {CRITERION:.0%} of all {all_of_them} jobs that were measured**"
        if passed == all_of_them
        else f"**The simulation misses {all_of_them - passed} of {all_of_them} measured jobs by over {CRITERION:.0%}**"
    )
    end = "" if passed == all_of_them else " What it says of clusters below is to be read with that in mind."
    return f"{said} (1, 2 and 4 workers; worst {worst.error:+.0%}: {_named(worst)}).{end}"


def _named(one: Check) -> str:
    return f"{one.engine}, {one.workers} worker{'s' * (one.workers > 1)}, documents of {_WORDS[one.kind]}"


def _stages(inputs: Inputs) -> str:
    kinds = list(inputs.kinds)
    names = list(inputs.kinds[kinds[0]].stages)
    titles = {
        "read": "read (Parquet → text)",
        "tokenise": "tokenise, look words up",
        "graphs": "build graphs",
        "network": "network",
        "write": "write (answers → Parquet)",
        "rest": "labels, columns, the rest",
    }
    rows = [
        [titles[name], *(f"{1e6 * inputs.kinds[kind].stages[name]:,.2f} µs" for kind in kinds)]
        + [f"{inputs.kinds[kind].stages[name] / inputs.kinds[kind].cpu:.0%}" for kind in kinds]
        for name in names
    ]
    rows.append(["**scoring, together**", *(f"**{1e6 * inputs.kinds[kind].cpu:,.2f} µs**" for kind in kinds), "", ""])
    for name, title in (("count_cpu", "packing, first pass (count words)"), ("pack_cpu", "packing, second (graphs)")):
        rows.append([title, *(f"{1e6 * inputs.kinds[kind].packing[name]:,.2f} µs" for kind in kinds), "", ""])
    sizes = {
        "text": [one.text for one in inputs.kinds.values()],
        "read, Parquet": [one.read for one in inputs.kinds.values()],
        "written, Parquet with answers": [one.written for one in inputs.kinds.values()],
        "packed for training": [one.packing["shard_bytes"] for one in inputs.kinds.values()],
    }
    bytes_rows = [[title, *(f"{size:,.0f}" for size in own)] for title, own in sizes.items()]
    words = [_WORDS[kind] for kind in kinds]
    return f"""## A document, stage by stage

CPU seconds of one worker process, with clocks around the stages of the code that workers run.

{_table("stage | " + " | ".join(words) + " | share | share", rows)}

{_table("bytes a document | " + " | ".join(words), bytes_rows)}

A file costs {1000 * inputs.kinds[kinds[0]].file:.1f} ms beside its documents, and a worker, once, what it works out
when it first sees a word: {" and ".join(f"{one.warm_up:.2f} s" for one in inputs.kinds.values())}.
With all {inputs.cores} cores busy at it
a document takes {inputs.contention:.2f} times the CPU seconds that it takes on one, and {inputs.crowding:.2f} times
that with two processes on each. The same file scored again takes
{_spread(inputs.cpu_slowdowns)} times the mean by CPU seconds,
{_spread(inputs.wall_slowdowns)} times by the clock (10th to 90th percentile)."""


def _spread(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 10]:.2f} to {ordered[-1 - len(ordered) // 10]:.2f}"


def _start_up(inputs: Inputs) -> str:
    def row(name: str, engine: Engine) -> list[str]:
        cpu = sum(step.cpu + sum(step.beside) for step in engine.driver)
        wait = sum(step.wait for step in engine.driver)
        task = engine.hand_out
        return [
            name,
            f"{cpu:.1f} + {wait:.1f} s",
            f"{engine.worker.cpu:.2f} + {engine.worker.wait:.2f} s",
            f"{1000 * task.cpu:.1f} + {1000 * task.wait:.1f} ms",
            f"{1 / max(task.cpu, 1e-9):,.0f}",
            f"{engine.leave:.2f} s a worker + {engine.end.cpu + engine.end.wait:.1f} s",
        ]

    titles = {"pool": "`--workers N` (processes)", "ray": "`--engine ray`, a cluster of its own"}
    head = "engine | before workers start | a worker (imports, model) | handing out a task | tasks a second | the end"
    return f"""## What an engine costs

One worker over files of one row: CPU seconds + seconds of waiting. Tasks a second are what the driver could hand out
at most.

{_table(head, [row(titles[name], engine) for name, engine in inputs.engines.items()])}"""


def _checks(checks: Sequence[Check]) -> str:
    rows = [
        [
            f"{one.engine}, {_WORDS[one.kind]}",
            str(one.workers),
            f"{median(one.measured):.1f} s ({min(one.measured):.1f} to {max(one.measured):.1f})",
            f"{median(one.others):.1f}",
            f"{median(one.predicted):.1f} s ({min(one.predicted):.1f} to {max(one.predicted):.1f})",
            f"{one.error:+.0%}",
            "yes" if one.passed else "**no**",
            f"{one.undisturbed:.1f} s",
        ]
        for one in checks
    ]
    within = f"within {CRITERION:.0%}"
    head = f"job | workers | measured | cores of others | predicted | error | {within} | with no others there"
    return f"""## Is it to be believed? Predicted and measured

`mpad predict MODEL DATA OUT --workers N`, 12 unequal files, the whole command by the clock: medians of the rounds, and
the range. The simulation takes the stages and the empty jobs above, never these times. Of a run it knows how many cores
others were using, every two seconds: on a machine of one's own that is nothing (last column). Comparisons with earlier
rounds, which are not in the record, showed what it had left out (what a worker works out when it first sees a word, the
time workers take to leave, processes that share a core); each of these was then measured by itself.

{_table(head, rows)}

![Predicted and measured seconds over workers](scale.png)"""


def _assumptions(inputs: Inputs) -> str:
    share, factor = ASSUMED.slow_workers
    return f"""## What is assumed, not measured

- Machines of a cluster have {ASSUMED.machine} cores as fast as the measured ones, a worker on each, and slow each other
  down as these do ({inputs.contention:.2f} times with all busy). One machine of 64 cores does so, too.
- A machine's link carries {ASSUMED.link * 8e-9:.0f} Gbit/s, shared storage {ASSUMED.storage * 8e-9:.0f} Gbit/s to
  all together. Reading, computing and writing of a task do not overlap.
- Files hold {FILES["short"]:,} short or {FILES["long"]:,} long documents. Ray gets at most 4,096
  blocks of them (`mpad.scale.ray`).
- Ray's driver has a machine of its own; hand-out and start-up cost what they cost here with one worker.
- Stragglers: every task is slowed down as the same file was by the clock on this shared machine (measured), and
  {share:.0%} of the workers take {factor:.0f} times as long (assumed).
- A worker fails once a day (assumed); its task begins again.
- A core costs {ASSUMED.price:.2f} dollars an hour. Workers' machines are paid from the command's start to its
  end, the driver's is not counted."""


def _scenarios(inputs: Inputs, scenarios: Sequence[Scenario], checks: Sequence[Check]) -> str:
    doubt = "" if all(one.passed for one in checks) else " Not every measured job was predicted well enough (above)."
    parts = [f"## {DOCUMENTS:,} documents\n\nSimulated; of several seeds, the run of the median time.{doubt}"]
    for kind in inputs.kinds:
        rows = [
            [
                one.name,
                f"{one.tasks:,}",
                _duration(one.result.seconds),
                f"{one.result.cpu / 3600:,.1f}",
                f"{one.dollars:,.2f}",
                f"{one.result.cores_used:.0%}",
                f"{one.result.driver_used:.0%}",
                f"{one.result.storage_used:.0%}",
                _duration(one.result.tail),
                f"{one.result.failures:,} / {one.result.wasted / one.result.cpu:.1%}",
                one.bottleneck,
            ]
            for one in scenarios
            if one.kind == kind
        ]
        head = (
            "where | tasks | time | core hours | dollars | cores busy | driver busy | storage busy | after the last "
            "hand-out | failures / work lost | takes longest"
        )
        parts.append(f"### Of {_WORDS[kind]}\n\n{_table(head, rows)}")
    return "\n\n".join(parts)


def _bottlenecks(inputs: Inputs, scenarios: Sequence[Scenario]) -> str:
    if "ray" not in inputs.engines:
        return ""
    rows = []
    for kind in inputs.kinds:
        at = limits(inputs, kind)
        cells = [f"{at[name]:,.0f}" for name in ("start-up", "scheduler", "network", "blocks")]
        rows.append([f"documents of {_WORDS[kind]}", *cells])
    head = (
        "Ray, workers from which on | start-up takes longer | the driver does | the network does | a block is too much"
    )
    busiest = [
        f"- {_WORDS[one.kind]}, {one.name}: "
        + ", ".join(f"{name} {_duration(seconds)}" for name, seconds in one.bounds.items())
        for one in scenarios
        if one.name in ("100 workers by Ray", "1,000 workers by Ray")
    ]
    listed = "\n".join(busiest)
    return f"""## Where the next bottleneck is

Each resource alone would take so long for {DOCUMENTS:,} documents; the largest is what more of the others cannot help:

{listed}

The number of workers from which on something takes longer than the cores do; beyond the last column some workers get
no block at all.

{_table(head, rows)}"""


def _streams(streams: Sequence[Stream]) -> str:
    if not streams:
        return ""
    rows = [[str(one.workers), f"{one.load:.0%}", _duration(one.mean), _duration(one.p99)] for one in streams]
    return f"""## The same, all day long

{DOCUMENTS:,} documents of 300 words a day in files that arrive at random times (Poisson; four hours simulated, start-up
included), stragglers as measured:

{_table("workers | busy | from arrival to answers, mean | 99th percentile", rows)}"""


def _packing(inputs: Inputs) -> str:
    rows = []
    for kind, one in inputs.kinds.items():
        seconds = (one.packing["count_cpu"] + one.packing["pack_cpu"]) * DOCUMENTS * inputs.contention
        rows.append(
            [
                _WORDS[kind],
                f"{seconds / 3600:,.1f}",
                _duration(seconds / inputs.cores),
                _duration(seconds / 64),
                f"{2 * one.read * DOCUMENTS / 1e9:,.0f} GB",
                f"{one.packing['shard_bytes'] * DOCUMENTS / 1e9:,.0f} GB",
            ]
        )
    head = f"documents of | core hours | on {inputs.cores} cores | on 64 cores | read | written"
    return f"""## Packing {DOCUMENTS:,} documents for training

`mpad fit --stream` passes over the text twice, on one machine. CPU seconds times documents; all cores busy, nothing
lost at the end:

{_table(head, rows)}

Training itself is not counted here."""


def _left_out() -> str:
    return """## What this does not say

Machines of other kinds, storage that answers slowly rather than narrowly, networks with several switches, Ray's own
memory with many tasks, a cluster that grows meanwhile, prices of storage and traffic. No cluster of more than one
machine was measured."""


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def draw(checks: Sequence[Check], path: Path) -> None:
    """Seconds over workers: dots for what was measured, lines for what was predicted."""
    from matplotlib.figure import Figure

    jobs = list(dict.fromkeys((one.engine, one.kind) for one in checks))
    figure = Figure(figsize=(3.4 * len(jobs), 3.4), layout="constrained")
    panels = figure.subplots(1, len(jobs), squeeze=False)[0]
    for axes, (engine, kind) in zip(panels, jobs, strict=True):
        own = [one for one in checks if (one.engine, one.kind) == (engine, kind)]
        workers = [one.workers for one in own]
        for one in own:
            axes.plot([one.workers] * len(one.measured), one.measured, "o", color=_BLUE, alpha=0.5, label="measured")
        axes.plot(workers, [median(one.predicted) for one in own], "s--", color=_ORANGE, label="predicted")
        axes.plot(workers, [one.undisturbed for one in own], ":", color=_GREY, label="with no others there")
        axes.set(title=f"{engine}, {_WORDS[kind]}", xlabel="workers", xticks=workers, ylim=(0, None))
    panels[0].set_ylabel("seconds, whole command")
    handles = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    panels[0].legend(handles.values(), handles.keys(), fontsize=8)
    figure.savefig(path, dpi=120)
