# Runs in the guest: MPI jobs of two processes over `verbs;ofi_rxm`, as abi-tests/clients runs them on other providers. Set by
# `run`, in front of this text: LIBDIR, MPICH and IMPI (environments of packages), TESTS (the folder of mpi4py's), MPI4PY and IMB
# (the names of tests and benchmarks). The first of them once more with nothing set of a provider, and no way but the network.
export FI_PROVIDER='verbs;ofi_rxm' FI_PROVIDER_PATH=/none HOME=/run
step() { echo "STEP $(cut -d ' ' -f 1 /proc/uptime) $*"; }
hostname guest && echo '127.0.0.1 localhost guest' >/etc/hosts
cd /run || exit 1
# Beside the jobs: which libfabric their processes have. The loader writes down each library that it starts.
loaded() { # JOB
	sed -n 's,^.*calling init: \(/.*/libfabric\.so.*\),\1,p' /run/"$1".loader.* | sort | uniq -c | sed "s/^ *\([0-9]*\) /LIBRARY $1 \1 /"
}
job() { # NAME SECONDS COMMAND ...
	local name=$1 limit=$2; shift 2
	step "$name"
	LD_DEBUG=libs LD_DEBUG_OUTPUT=/run/$name.loader timeout "$limit" "$@" >"/run/$name" 2>&1 </dev/null
	echo "JOB $name ends with $?"
	loaded "$name"
}

(
	export LD_LIBRARY_PATH=$LIBDIR MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_DEBUG_SUMMARY=1
	cd "$TESTS" || exit
	words=(-i test_p2p_buf -i test_cco_buf)
	for test in $MPI4PY; do words+=(-k "*BufWorld.$test"); done
	mpi4py() { # NAME
		job "$1" 300 "$MPICH/bin/mpiexec" -n 2 "$MPICH/bin/python" -B -P main.py -v "${words[@]}"
		sed -nE "s/.*libfabric provider: ([a-z_;]*) - .*/PROVIDER $1 \1/p" "/run/$1" | sort -u
		# A line may begin behind what the other rank has just written.
		grep -aoE '(FAIL|ERROR): .*|Ran [0-9]+ tests|OK' "/run/$1" | sed "s/^/$1: /"
		[ "$(grep -acE 'Ran [0-9]+ tests' "/run/$1")" = 2 ] || tail -n 30 "/run/$1"
	}
	mpi4py mpi4py
	unset FI_PROVIDER
	export FI_AUTO_LOCAL=none FI_LOG_LEVEL=info FI_LOG_PROV=auto
	mpi4py mpi4py-auto
	grep -aoE 'peers [0-9]+ were reached by verbs, [0-9]+ by tcp' /run/mpi4py-auto | sort | uniq -c | sed 's/^ */WAYS /'
)
(
	export LD_LIBRARY_PATH=$LIBDIR:$IMPI/lib I_MPI_FABRICS=ofi I_MPI_OFI_PROVIDER=$FI_PROVIDER I_MPI_ROOT=$IMPI I_MPI_HYDRA_BOOTSTRAP=fork
	export I_MPI_PIN=0 I_MPI_DEBUG=2
	printf '%s\n' 0 8 4096 65536 1048576 >/run/lengths
	# shellcheck disable=SC2086
	job imb 200 "$IMPI/bin/mpiexec.hydra" -n 2 "$IMPI/bin/IMB-MPI1" $IMB -npmin 2 -iter 10 -msglen /run/lengths
	sed -nE 's/.*\[0\] MPI startup\(\): libfabric provider: ([a-z_;]*).*/PROVIDER imb \1/p' /run/imb | sort -u
	awk '/^# Benchmarking /{ title = $3 } /^ +[0-9]+ +[0-9.]+ /{ print "IMB " title, $0 }' /run/imb
	grep -q '^# All processes entering MPI_Finalize' /run/imb || tail -n 30 /run/imb
)
step "end"
