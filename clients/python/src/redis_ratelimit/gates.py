"""For the middleware of another framework: what decides about a request, and what stands in a response."""

from .decide.headers import combined_headers
from .gate.entrance import AsyncGate
from .gate.entrance_threads import Gate
from .gate.passage import Passage
from .gate.response import Refusal

__all__ = ["AsyncGate", "Gate", "Passage", "Refusal", "combined_headers"]
