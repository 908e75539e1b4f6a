# For scripts that start servers: a port nobody holds, in $port, and when a server listens there.
# Below 32768: from there on the kernel gives ports to outgoing connections, and any program may hold one.
port=$((20000 + RANDOM % 10000))

held() { grep -qi "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") " /proc/net/tcp /proc/net/tcp6 2>/dev/null; }

next_port() {
    port=$((port + 1))
    while held $port; do port=$((port + 1)); done
}

until_listening() { # PROCESS: comes back when it listens, or has ended
    local hex; hex=$(printf ':%04X 00000000:0000 0A' $port)
    until grep -q "$hex" /proc/net/tcp || ! kill -0 "$1" 2>/dev/null; do sleep 0.02; done
}
