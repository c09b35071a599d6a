"""Search: make a kernel faster, by any proposer, on one loop: ask → propose → prove → measure → tell."""
