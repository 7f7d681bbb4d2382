#!/usr/bin/env bash
# nginx in front of the gateway, as deploy/nginx.conf has it but for TLS, and a request through it. Ends nginx again.
# GATEWAY=http://127.0.0.1:3000 FRONT_PORT=8080 examples/10-behind-nginx.sh
set -euo pipefail
cd "$(dirname "$0")/.."
gateway=${GATEWAY:-http://127.0.0.1:3000}
port=${FRONT_PORT:-8080}
work=$(mktemp -d)
# Of the two servers the second is the one that forwards; it listens without TLS here.
sed -e "s|server 127.0.0.1:3000;|server ${gateway#http://};|" \
  -e "/listen \[::\]/d; /ssl_certificate/d" -e "s|listen 443 ssl http2;|listen 127.0.0.1:$port;|" \
  -e "s|listen 80;|listen 127.0.0.1:$((port + 1));|" deploy/nginx.conf >"$work/sluice.conf"
cat >"$work/nginx.conf" <<CONF
pid $work/nginx.pid;
error_log $work/error.log;
events {}
http {
  access_log off;
  client_body_temp_path $work/body;
  proxy_temp_path $work/proxy;
  fastcgi_temp_path $work/fastcgi;
  uwsgi_temp_path $work/uwsgi;
  scgi_temp_path $work/scgi;
  include $work/sluice.conf;
}
CONF
nginx -t -c "$work/nginx.conf" -e "$work/error.log"
nginx -c "$work/nginx.conf" -e "$work/error.log"
trap 'kill "$(cat "$work/nginx.pid")"; rm -rf "$work"' EXIT
curl --silent --show-error --retry 5 --retry-connrefused --fail \
  --header 'Host: gateway.example' "http://127.0.0.1:$port/gateway/info"
