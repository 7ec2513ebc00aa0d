#!/bin/sh
# Chromium comes from the system's packages; this says which one run.sh takes
for name in "${CALL_CHROMIUM:-chromium}" chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exec "$name" --version
done
echo "no Chromium here: install the package chromium, or name the browser in CALL_CHROMIUM" >&2
exit 1
