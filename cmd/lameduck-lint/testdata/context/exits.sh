#!/bin/sh
exec 2>&1
shift 2
server "$1"
exit $?
