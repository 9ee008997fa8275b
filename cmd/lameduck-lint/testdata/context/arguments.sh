#!/bin/bash
set -euo pipefail
if [ -z "${DB:-}" ]; then
    echo "DB is missing" >&2
    exit 1
fi
migrate || exit 1
"$@"
