#!/bin/sh
# $1: display_test. Where there is no Xvfb, its window tests say so and end as ctest's SKIP_RETURN_CODE.
said=$(PATH='' "$1" '[window]')
code=$?
echo "$said"
[ $code -eq 77 ] || { echo "exit $code, not 77"; exit 1; }
case $said in *'skipped: '*Xvfb*) ;; *) exit 1 ;; esac
