#!/bin/sh
envsubst </site.template >/etc/nginx/conf.d/default.conf
nginx -g "daemon off;"
