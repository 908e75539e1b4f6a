#!/usr/bin/env bash
# NIXL of PyPI, which moves the memory of inference engines, by its backend LIBFABRIC: two processes with `nixl.py`. The
# backend is linked against the C library after 2.6.0 (FABRIC_1.10), so 2.5.1 cannot be put under it.
set -u
. "$(dirname "$0")/lib"
env=$(environment nixl nixl-cu12==1.5.1 nvidia-cuda-runtime-cu12==12.9.79 numpy==2.2.6) ||
    { echo "FAIL nixl: cannot be installed"; exit; }
hwloc=$("$REAL" openmpi4) || { echo "FAIL nixl: its hwloc cannot be fetched"; exit; }
packages=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
libs=$WORK/nixl-libs
mkdir -p "$libs"
ln -sf "$hwloc"/usr/lib/*/libhwloc.so.15 "$packages"/nvidia/cuda_runtime/lib/libcudart.so.12 "$libs"
# What comes with the driver of a card: all of it that the backend asks for, and it finds no card (100).
for call in cuCtxSetCurrent cuDeviceGetPCIBusId cuPointerGetAttributes; do echo "int $call(void); int $call(void) { return 100; }"; done |
    $CC -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$libs/libcuda.so.1" -x c - || { echo "FAIL nixl: no stand-in for a driver"; exit; }

export NIXL_PLUGIN_DIR=$packages/.nixl_cu12.mesonpy.libs/plugins
LIBRARIES=$libs job nixl 120 "$env/bin/python" -P "$clients/nixl.py"
said=$(tail -n 1 "$WORK/nixl.log")
why=$(mapped nixl 2)
[ "$status" = 0 ] && [ "$said" = '10 transfers' ] || why="${why:+$why; }status $status: $said"
if [ -n "$why" ]; then row "NIXL 1.5.1" nixl 2 0 1 0 "$took"; echo "FAIL nixl: $why"
else row "NIXL 1.5.1" nixl 2 "${said% transfers}" 0 0 "$took"; echo "ok nixl"; fi
