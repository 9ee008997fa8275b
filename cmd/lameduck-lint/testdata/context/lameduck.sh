#!/bin/sh
/lameduck --delay=5 -- server
