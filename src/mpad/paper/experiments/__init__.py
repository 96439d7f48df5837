"""The paper, again: its protocol, records of every run, and its tables computed from them."""
