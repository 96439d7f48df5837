"""How the promises of docs/security.md are tried: fuzzers, kills, misbehaving clients; `make security` runs all."""
