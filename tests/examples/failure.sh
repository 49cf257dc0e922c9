#!/bin/sh
# failure.sh TEXT COMMAND...: the command has to fail, not crash, and say TEXT.
text=$1
shift
output=$("$@" 2>&1)
status=$?
printf '%s\n(exit status %s)\n' "$output" "$status"
[ "$status" = 1 ] || [ "$status" = 2 ] || exit 1
case $output in *"$text"*) ;; *) exit 1 ;; esac
