"""A model over HTTP, and a page to use it: `mpad serve`."""
