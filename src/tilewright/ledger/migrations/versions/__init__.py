"""One file a step; each is frozen once it is released."""
