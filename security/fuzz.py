"""Random changes to whole inputs, and what once failed, for every target."""

import random
from functools import partial
from pathlib import Path

from security import mutate
from security.outcome import Case
from security.targets import TARGETS, SilentChange

CORPUS = Path(__file__).parent / "corpus"  # a folder a target, a file a case that once failed


def corpus_of(target: str) -> list[bytes]:
    """What once failed."""
    return [file.read_bytes() for file in sorted((CORPUS / target.replace(" ", "-")).glob("*"))]


def cases_of(target: str) -> Case:
    """Case by number: first the seeds and what once failed as they are, then changed."""
    check, seeds = TARGETS[target].check, [*TARGETS[target].seeds(), *corpus_of(target)]

    def case(number: int) -> str:
        generator = random.Random(number)
        data = seeds[number % len(seeds)]
        if number >= len(seeds):
            data = mutate.bytes_of(data, generator.choice(seeds), generator)
        try:
            return "accepted" if check(data) else "refused"
        except SilentChange as error:
            return f"silent change: {error}"

    return case


MAKERS = {name: partial(cases_of, name) for name in TARGETS}
