"""HTTP API and web app: `mpad serve`."""
