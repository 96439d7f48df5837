"""What is wrong with a request: a status and a sentence. Nothing of the machine is ever in it."""


class Problem(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
