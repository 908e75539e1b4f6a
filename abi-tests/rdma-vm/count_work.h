/* What `count_work.so` has counted so far. */
#ifndef COUNT_WORK_H
#define COUNT_WORK_H

struct counted {
	unsigned long requests;      /* sends, reads and writes posted */
	unsigned long doorbells;     /* calls that posted them: a call rings once for its list */
	unsigned long inlined;       /* of the requests: their bytes were copied into them */
	unsigned long receives;      /* receives posted */
	unsigned long completions;   /* taken from queues */
	unsigned long registrations;
};

struct counted counted(void);

#endif
