#!/usr/bin/env bash
# usage: gate.sh BEFORE AFTER [LIMIT]   (two checkouts of the project that is measured; each runs examples/ci-gate/gate.yaml)
set -euo pipefail
before=$1 after=$2 limit=${3:-5%}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for side in "$before" "$after"; do
    (cd "$side" && tracelock study run "$here/gate.yaml" --results results)
done
exec tracelock compare "$before/results/gate" "$after/results/gate" --fail-above "$limit" --junit gate.xml
