#!/bin/sh
# pion's peer, in the versions of go.mod and go.sum
cd "$(dirname "$0")" && exec go build -mod=readonly -trimpath -o peer .
