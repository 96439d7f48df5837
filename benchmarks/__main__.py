"""`python -m benchmarks`: everything that needs no GPU, in a few minutes; writes cpu.json and RESULTS.md."""

import sys

from benchmarks import results
from benchmarks.speed import answering, memory, preparing, scaling, training

SECTIONS = {
    "Raw text → graphs": preparing.run,
    "Training (2 threads)": training.run,
    "Answering (1 thread)": answering.run,
    "Memory": memory.run,
    "Length of a document (1 thread)": scaling.run,
}


def main() -> None:
    """Run every section, or those whose titles begin with the words given, whose record is a file of its own."""
    results.check_clean()
    found = {}
    for title, section in SECTIONS.items():
        if len(sys.argv) == 1 or any(title.lower().startswith(word.lower()) for word in sys.argv[1:]):
            print(f"… {title}", file=sys.stderr, flush=True)
            found[title] = section()
    parts = "-".join(title.split()[0].lower() for title in found)
    results.write(found, "cpu" if len(found) == len(SECTIONS) else parts)


if __name__ == "__main__":
    main()
