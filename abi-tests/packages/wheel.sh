#!/usr/bin/env bash
# make wheel: whether it suits the systems that it says, and what it is like in an environment.
set -u
. "$(dirname "$0")/lib"
. "$ROOT/abi-tests/clients/lib"
run_block wheel
wheel=$(echo "$ROOT"/target/packages/libfabric-*.whl)
[ -e "$wheel" ] || { echo "FAIL wheel: not there"; exit; }

if tool=$(environment auditwheel auditwheel==6.8.2 pyelftools==0.33 packaging==26.3); then
    # PyPA's own: the tag must be what it finds, not merely one that it lets pass.
    "$tool/bin/auditwheel" show "$wheel" >"$WORK/audit" 2>&1
    found=$(tr -s '\n ' ' ' <"$WORK/audit" | sed -n 's/.*consistent with the following platform tag: "\([^"]*\)".*/\1/p')
    verdict wheel-auditwheel "$(diff <(echo "py3-none-$found") <(basename "$wheel" .whl | cut -d- -f3-))"
else echo "FAIL wheel-auditwheel: it cannot be installed: $(tail -n 1 "$WORK/auditwheel.pip")"; fi

# What the programs of the page need: a program to compile, and the packages where the page says.
enter_tree wheel || exit 1
printf '#include <stdio.h>\n#include <rdma/fabric.h>\nint main(void) { return !fi_strerror(61); }\n' >program.c
env=$WORK/env
python3 -m venv "$env" && (. "$env/bin/activate" && cd / && find "$env" | sort >"$WORK/before") || exit 1
. "$env/bin/activate"
why=$(pip install --quiet --no-index --disable-pip-version-check "$wheel" 2>&1 >/dev/null) && why=
verdict wheel-install "$why"
run_block wheel-use
verdict wheel-libdir "$(diff <(echo "$env/lib") <(python -m libfabric --libdir))"
verdict wheel-dirs "$(diff <(echo "$env/include $env/bin") <(python -m libfabric --includedir --bindir))"
has_mapped wheel-program "$env/lib/libfabric.so.1" ./program
for program in fi_info fi_pingpong fi_strerror; do has_mapped wheel-$program "$env/lib/libfabric.so.1" $program --version; done
verdict wheel-headers "$(diff -r "$ROOT/include/rdma" "$env/include/rdma")"
says=$(PKG_CONFIG_PATH=$env/lib/pkgconfig pkg-config --cflags --libs libfabric 2>&1)
# shellcheck disable=SC2086
verdict wheel-pkg-config "$($CC -o by-pkg-config program.c $says 2>&1)"
has_mapped wheel-pkg-config-program "$env/lib/libfabric.so.1" env LD_LIBRARY_PATH="$env/lib" ./by-pkg-config
run_block wheel-back
verdict wheel-nothing-left "$(find "$env" -name __pycache__ -prune -o ! -type d -print | grep -iE 'fabric|/fi_|/rdma/' | head -n 3)"

cp "$wheel" "$WORK/" && make -s -C "$ROOT" wheel >"$WORK/again" 2>&1
verdict wheel-same "$(cmp "$WORK/$(basename "$wheel")" "$wheel" 2>&1)"
