#!/bin/sh
# Patroni runs this once, on the first primary.
set -eu
sql() { psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host=/tmp --username=postgres "$@"; }
sql --command='CREATE DATABASE tidings'
sql --dbname=tidings --file=/etc/tidings/clients.sql
sql --file=/etc/tidings/events.sql
