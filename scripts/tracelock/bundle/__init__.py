"""A study as one archive that a colleague can open without fear and repeat (docs/bundles.md)."""
