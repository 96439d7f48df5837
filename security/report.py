"""docs/security.md: the threat model, and beneath it what the last run came to."""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent.parent / "docs" / "security.md"
_HEADING = "## What the last run came to"
_MEANING = """A crash is any exception but mpad's own, or the end of the process; a hang takes over 5 s; executed is
code that a case brought with it (an audit hook watches); a silent change is damage that went unnoticed, two loaders
that answer differently, or an answer that is not finite. Accepted folders that were changed on purpose are other whole
models (another window, another weight), on which both loaders agree. Peak memory is the whole process's."""
_COLUMNS = ("cases", "accepted", "refused", "crashes", "hangs", "executed", "silent_changes", "peak_megabytes")


def write(results: dict[str, Any]) -> None:
    """Keep the results, and the page's tables with them."""
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    page = PAGE.read_text() if PAGE.exists() else "# Security\n\n"
    PAGE.write_text(page.partition(_HEADING)[0] + tables(results))


def tables(results: dict[str, Any]) -> str:
    """The measured part of the page."""
    origin = results["origin"]
    lines = [
        _HEADING,
        "",
        f"`make security`, {origin['when']}, commit {origin['commit']}, {origin['versions']}.",
        "Records: security/results.json.",
        "",
        "| target | " + " | ".join(name.replace("_", " ") for name in _COLUMNS) + " |",
        "| --- |" + " ---: |" * len(_COLUMNS),
    ]
    for row in results["fuzzed"]:
        lines.append(f"| {row['target']} | " + " | ".join(f"{row[name]:,}" for name in _COLUMNS) + " |")
    lines += ["", _MEANING, "", *_kills(results["kills"]), *_crowd(results["crowd"])]
    lines += [
        "**Trainings beside one another**, seconds each (2 cores, 2 threads each):",
        "",
        "| threads wait | at once | seconds each |",
        "| --- | ---: | ---: |",
    ]
    lines += [f"| {row['threads wait']} | {row['at once']} | {row['seconds each']} |" for row in results["beside"]]
    speed = results["speed"]
    lines += [
        "",
        f"**Loading and answering**, CPU milliseconds, median of 7: reading a model of {speed['megabytes']} MB",
        f"{speed['load']}, of which its checksum {speed['checksums']}; one document {speed['one document']}.",
        "",
        f"**C under AddressSanitizer and UndefinedBehaviorSanitizer**: {results['sanitized']['tests']} tests, "
        f"{results['sanitized']['findings']} findings.",
        "",
    ]
    return "\n".join(lines)


def _kills(kills: dict[str, Any]) -> list[str]:
    same = "identical to the last bit" if kills["identical"] else "**not identical**"
    left = ", ".join(kills["left behind"]) or "nothing"
    return [
        f"**Training killed {kills['kills']} times** (SIGKILL at random moments, resumed each time): weights {same} to",
        f"those of an undisturbed run; left behind: {left}.",
        "",
    ]


def _crowd(crowd: dict[str, Any]) -> list[str]:
    return [
        f"**A server in a crowd**: 100 clients for {crowd['seconds']:g} s and 20 others with {crowd['bad requests']:,}",
        f"half requests and nonsense: {crowd['good requests']:,} good requests, {crowd['failed']} of them failed;",
        f"memory {crowd['megabytes before']} MB before, {crowd['megabytes after']} MB after;",
        f"{crowd['tracebacks']} tracebacks; stopped in {crowd['seconds to stop']} s.",
        "",
    ]
