"""One file a cause. Each module holds ``RULE``, a `Rule`, and is found by its file name."""
