#!/usr/bin/env bash
# make deb: what is in the packages, what they say of themselves, and what lintian says of them.
set -u
unset DEBEMAIL DEBFULLNAME
. "$(dirname "$0")/lib"
run_block deb
packages=$ROOT/target/packages lib=usr/lib/$multiarch
only() { # NAME: the file of the package
    local files=("$packages/$1"_*.deb)
    [ ${#files[@]} = 1 ] && [ -e "${files[0]}" ] && echo "${files[0]}"
}
for package in libfabric-rs1 libfabric-rs-dev libfabric-rs-bin; do
    file=$(only $package) || { echo "FAIL deb-$package: is not there, or more than once"; exit; }
    dpkg-deb -x "$file" "$WORK/$package" && dpkg-deb -e "$file" "$WORK/$package/DEBIAN" || exit 1
    (cd "$WORK/$package" && md5sum --quiet -c DEBIAN/md5sums) >"$WORK/sums" 2>&1
    verdict "deb-$package-sums" "$(head -n 2 "$WORK/sums")"
    others=$(cd "$WORK/$package" && find usr -type f | sort | diff - <(cut -c35- DEBIAN/md5sums | sort))
    verdict "deb-$package-sums-of-all" "$others"
done

holds() { # PACKAGE FILE...
    local package=$1 file; shift
    for file; do
        if [ -e "$WORK/$package/$file" ] || [ -L "$WORK/$package/$file" ]; then echo "ok deb-$package-/$file"
        else echo "FAIL deb-$package-/$file: not there"; fi
    done
}
holds libfabric-rs1 $lib/$ours $lib/libfabric.so.1 usr/share/doc/libfabric-rs1/{copyright,changelog.gz,changelog.Debian.gz}
holds libfabric-rs-dev $lib/libfabric.so $lib/libfabric.a $lib/pkgconfig/libfabric.pc usr/share/doc/libfabric-rs-dev/copyright
for program in fi_info fi_pingpong fi_strerror; do holds libfabric-rs-bin usr/bin/$program usr/share/man/man1/$program.1.gz; done
verdict deb-headers "$(diff -r "$ROOT/include/rdma" "$WORK/libfabric-rs-dev/usr/include/rdma")"
for manual in docs/man/*.[0-9]; do # each is in one of them
    why=$(ls "$WORK"/*/usr/share/man/man"${manual##*.}/$(basename "$manual").gz" 2>&1 >/dev/null) && why=
    verdict "deb-$(basename "$manual")" "$why"
done
verdict deb-prefix "$(diff <(echo /usr) <(sed -n 's/^prefix=//p' "$WORK/libfabric-rs-dev/$lib/pkgconfig/libfabric.pc"))"

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
says() { # PACKAGE FIELD PATTERN
    local text; text=$(dpkg-deb -f "$(only "$1")" "$2")
    if grep -qE "$3" <<<"$text"; then echo "ok deb-$1-$2-$3"; else echo "FAIL deb-$1-$2: no '$3' in: $text"; fi
}
for package in 1 -dev -bin; do
    says libfabric-rs$package Provides "^libfabric$package \(= $version-0rs1\)$"
    says libfabric-rs$package Conflicts "^libfabric$package$"
    says libfabric-rs$package Replaces "^libfabric$package$"
done
says libfabric-rs1 Depends '^libc6 \(>= 2\.[0-9]+\), libgcc-s1 \(>= [0-9.]+\)$'
says libfabric-rs1 Recommends 'libibverbs1, librdmacm1'
says libfabric-rs1 Multi-Arch '^same$'
says libfabric-rs-dev Multi-Arch '^same$'
says libfabric-rs-dev Depends "^libfabric-rs1 \(= $version-0rs1\)$"
# Worked out from the symbols file: by the node that fi_getinfo has today.
says libfabric-rs-bin Depends 'libfabric1 \(>= 2\.5\.0\)'

# The project has no address. Who gives the packages to others names himself, as for Debian's own tools.
for package in 1 -dev -bin; do says libfabric-rs$package Maintainer '@libfabric-rs\.invalid>$'; done

# The symbols file says of each symbol, and of no other, which release brought it, or that only ours has it.
control=$WORK/libfabric-rs1/DEBIAN
verdict deb-symbols "$(diff <(nm -D --defined-only "$DIST/lib/$ours" | awk '$2 != "A" {sub("@+", "@", $3); print $3}' | sort) \
    <(awk '/^ / && $1 !~ /^FABRIC/ {print $1}' "$control/symbols" | sort) | head -n 4)"
verdict deb-symbols-only-ours "$(awk '/^ / && ($1 ~ /FABRIC_RS_/) != ($3 == "1")' "$control/symbols" | head -n 2)"
verdict deb-shlibs "$(diff <(echo "libfabric 1 libfabric-rs1 (>= $version)") "$control/shlibs")"
verdict deb-trigger "$(diff <(echo "activate-noawait ldconfig") "$control/triggers")"

lintian --allow-root --fail-on none "$packages"/*.deb >"$WORK/lintian" 2>&1 || echo "FAIL deb-lintian: exit status $?"
verdict deb-lintian "$(grep -vE '^[IN]: |^running with root' "$WORK/lintian" | head -n 4)"

mkdir "$WORK/first" && cp "$packages"/*.deb "$WORK/first/"
DEBFULLNAME='A. Packager & Co' DEBEMAIL=packager@example.org make -s deb >"$WORK/named.log" 2>&1
says libfabric-rs1 Maintainer '^A\. Packager & Co <packager@example\.org>$'
DEBEMAIL='Somebody <else@example.org>' make -s deb >>"$WORK/named.log" 2>&1
says libfabric-rs-bin Maintainer '^Somebody <else@example\.org>$'
verdict deb-changelog-names "$(dpkg-deb --fsys-tarfile "$(only libfabric-rs-bin)" | tar -xO ./usr/share/doc/libfabric-rs-bin/changelog.Debian.gz |
    zcat | grep -q '^ -- Somebody <else@example\.org>  ' || echo 'not who has built it')"

# The same packages twice of the same source.
make -s deb >"$WORK/again" 2>&1
for file in "$WORK"/first/*.deb; do verdict "deb-same-$(basename "${file%%_*}")" "$(cmp "$file" "$packages/$(basename "$file")" 2>&1)"; done
