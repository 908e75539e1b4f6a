/*
 * How tostr.c and tostr_addresses.c print a text. Addresses of our own objects differ from run to run, so they are shown
 * as <ptr>.
 */
#ifndef TOSTR_H
#define TOSTR_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

/* Prints a text with one pointer hidden. */
static void show(const char *label, const char *text, const void *hidden)
{
	char name[32];
	const char *at;

	if (!text) {
		printf("%s: NULL\n", label);
		return;
	}
	printf("%s: <<", label);
	snprintf(name, sizeof name, "%p", hidden);
	while (hidden && (at = strstr(text, name))) {
		printf("%.*s<ptr>", (int)(at - text), text);
		text = at + strlen(name);
	}
	printf("%s>>\n", text);
}

#endif
