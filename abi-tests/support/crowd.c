#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include "crowd.h"

/* A process that takes so many seconds hangs. */
enum { DEADLINE = 900 };

int processes, operations;
OWN_ALL int me, steps;

static const struct crowd *plan;
static unsigned *arrived;
static uint64_t from;
OWN uint64_t seed;

uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

size_t below(size_t most)
{
	return (size_t) (rnd() % most);
}

void scramble(char *to, size_t len, uint64_t with)
{
	size_t i;

	for (i = 0; i < len; i++) {
		with = with * 6364136223846793005ull + 1442695040888963407ull;
		to[i] = (char) (with >> 56);
	}
}

bool holds(const char *bytes, size_t len, uint64_t with)
{
	size_t i;

	for (i = 0; i < len; i++) {
		with = with * 6364136223846793005ull + 1442695040888963407ull;
		if (bytes[i] != (char) (with >> 56))
			return false;
	}
	return true;
}

void meet(void)
{
	OWN unsigned round;

	round++;
	__atomic_fetch_add(arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < round * (unsigned) processes) {
		plan->progress();
		sched_yield();
	}
}

void read_all(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry[16];
	struct fi_cq_err_entry err;
	ssize_t ret, i;

	while ((ret = fi_cq_read(cq, entry, 16)) != -FI_EAGAIN) {
		if (ret == -FI_EAVAIL) {
			memset(&err, 0, sizeof(err));
			if (fi_cq_readerr(cq, &err, 0) == 1)
				plan->ended(err.op_context, err.err ? err.err : FI_EOTHER, err.len);
			continue;
		}
		if (ret < 0)
			DIE("fi_cq_read: %zd", ret);
		for (i = 0; i < ret; i++)
			plan->ended(entry[i].op_context, 0, entry[i].len);
	}
}

struct fi_info *hints_for_all(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->fabric_attr->prov_name = strdup("shm");
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_FENCE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
#ifdef THREADS
	/* With our own threads beside them, or without. */
	hints->domain_attr->progress = from % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
#endif
	return hints;
}

struct fi_info *offer(struct fi_info *hints)
{
	struct fi_info *info;

	OK(fi_getinfo(FI_VERSION(2, 0), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	return info;
}

/* All zero, and seen by the children that are made later. */
static void *shared_memory(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		DIE("mmap");
	return memory;
}

static void begin(int number)
{
	me = number;
	seed = from * 0x9e3779b97f4a7c15ull + (uint64_t) me + 1;
	alarm(DEADLINE);
	plan->run();
}

#ifdef THREADS
static void *run_thread(void *number)
{
	begin((int) (intptr_t) number);
	return NULL;
}

static int run_all(void)
{
	pthread_t threads[64];
	int i;

	for (i = 0; i < processes; i++)
		if (pthread_create(&threads[i], NULL, run_thread, (void *) (intptr_t) i))
			return 1;
	for (i = 0; i < processes; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
#else
static int run_all(void)
{
	int i, status, bad = 0;

	for (i = 0; i < processes; i++)
		if (fork() == 0) {
			begin(i);
			_exit(0);
		}
	for (i = 0; i < processes; i++) {
		if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
			bad = 1;
			if (WIFSIGNALED(status))
				fprintf(stderr, "a process ended by signal %d\n", WTERMSIG(status));
		}
	}
	return bad;
}
#endif

int crowd(const struct crowd *of, void *common, int argc, char **argv)
{
	from = argc > 3 ? strtoull(argv[3], NULL, 0) : (uint64_t) getpid();
	plan = of;
	processes = argc > 1 ? atoi(argv[1]) : plan->processes;
	operations = argc > 2 ? atoi(argv[2]) : plan->operations;
	if (processes < 1 || processes > plan->most)
		return 2;
	*(void **) common = shared_memory(plan->shared);
	arrived = shared_memory(sizeof(*arrived));
	fprintf(stderr, "%d processes, %d operations each, seed %llu\n", processes, operations, (unsigned long long) from);
	return run_all();
}
