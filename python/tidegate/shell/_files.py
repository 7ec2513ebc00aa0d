"""What the processes of a session leave for each other."""

TOLD = "session.json"
"""What there is to say of a session that is over."""
FAILED = "failed.json"
"""Why there is no such thing."""
READY = "ready.json"
"""The descriptors of the sides' networks in the process inside, by side."""
