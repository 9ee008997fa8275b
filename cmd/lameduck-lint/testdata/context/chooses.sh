#!/bin/sh
if [ "$1" = web ]; then
    exec gunicorn app
fi
serve() { exec gunicorn app; }
. /lib.sh
serve
