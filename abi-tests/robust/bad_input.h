/* What the files of bad_input share. */
#ifndef BAD_INPUT_H
#define BAD_INPUT_H

#include "cases.h"
#include "guarded.h"

#define API FI_VERSION(2, 0)
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct bad {
	const char *name;
	void (*body)(void *);
	void *arg;
};

extern const struct bad bad_texts[];
extern const size_t bad_text_count;

/* A text far longer than anything has room for. */
char *endless(char c);

#endif
