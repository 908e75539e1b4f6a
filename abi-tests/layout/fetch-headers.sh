#!/bin/sh
# Fetches the real headers, by package name, into target/headers/VERSION. Nothing is installed; what is there stays.
#
#   1.17.0  libfabric-dev of Debian 12, the system the project is built on
#   2.1.0   libfabric-dev of Debian 13, through an apt setup of its own that lives in target/
set -eu
cd "$(dirname "$0")"
base=$PWD/target/headers
keys=/usr/share/keyrings/debian-archive-keyring.gpg
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

# fetch SUITE VERSION
fetch() {
    dir=$base/$2
    [ -e "$dir/ok" ] && return
    apt=$base/apt-$1
    rm -rf "$dir" && mkdir -p "$dir" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
    : > "$apt/status"
    echo "deb [signed-by=$keys] $mirror $1 main" > "$apt/sources.list"
    run() {
        apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/parts" \
            -o Dir::State::Lists="$apt/lists" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt/cache" \
            -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts="$apt/parts" \
            -o APT::Sandbox::User=root -o APT::Architecture=amd64 -o Acquire::Languages=none "$@"
    }
    run update
    (cd "$dir" && run download libfabric-dev && dpkg -x libfabric-dev_*.deb . && rm libfabric-dev_*.deb)
    grep -q "Version: $2\$" "$dir/usr/lib/x86_64-linux-gnu/pkgconfig/libfabric.pc" || {
        echo "fetch-headers: $1 no longer has libfabric $2" >&2
        exit 1
    }
    touch "$dir/ok"
    rm -rf "$apt"
}

fetch bookworm 1.17.0
fetch trixie 2.1.0
