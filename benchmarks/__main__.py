"""`python -m benchmarks`: everything, in a few minutes; writes RESULTS.md and results.json."""

import sys

from benchmarks import memory, preparing, results, scaling, training

SECTIONS = {
    "Raw text → graphs": preparing.run,
    "Training on the CPU (2 threads)": training.run,
    "Memory": memory.run,
    "Length of a document (1 thread)": scaling.run,
}


def main() -> None:
    """Run every section."""
    found = {}
    for title, section in SECTIONS.items():
        print(f"… {title}", file=sys.stderr, flush=True)
        found[title] = section()
    results.write(found)


if __name__ == "__main__":
    main()
