"""Reader: any Kineto JSON becomes columns; nothing here knows what a step is."""
