#!/bin/sh
# A job script that ends in the training command.
echo "starting"
exec "$PYTHON" -u plain.py --epochs 2
