"""Known faults: traces whose truth is known, and how often the diagnosis finds it."""
