#!/bin/sh
# libwebrtc for node into node_modules, in the versions of package-lock.json
cd "$(dirname "$0")" && exec npm ci --no-audit --no-fund
