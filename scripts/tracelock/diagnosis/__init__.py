"""Rules over an analysis: findings and their remedies."""
