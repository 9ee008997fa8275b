#!/bin/sh
exec /again.sh "$@"
