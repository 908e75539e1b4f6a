/*
 * The exported functions that take `...`, which stable Rust cannot define. They put the text together and hand it to
 * Rust, where everything else happens. The enums of the public headers are plain ints here, as the ABI has them.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct fi_provider;

#define FI_EXPORT(fmt, args) __attribute__((visibility("default"), format(printf, fmt, args)))
#define FI_INTERNAL __attribute__((visibility("hidden")))

FI_INTERNAL void rs_fi_log(const struct fi_provider *prov, unsigned int level, unsigned int subsys, const char *func,
			   int line, const char *msg);
FI_INTERNAL int rs_fi_param_define(const struct fi_provider *provider, const char *param_name, unsigned int type,
				   const char *help);

FI_EXPORT(6, 7)
void fi_log(const struct fi_provider *prov, unsigned int level, unsigned int subsys, const char *func, int line,
	    const char *fmt, ...);
FI_EXPORT(4, 5)
int fi_param_define(const struct fi_provider *provider, const char *param_name, unsigned int type,
		    const char *help_string_fmt, ...);

/*
 * Formats into `room`, or into fresh memory when the text is longer. Returns the text; the caller frees it when it is
 * not `room`. Without memory the text is cut, and its end says so; with a format that cannot be used it is the format.
 */
static char *format(char *room, size_t size, const char *fmt, va_list args)
{
	static const char cut[] = "... (cut: out of memory)\n";
	va_list again;
	char *text = room;
	int len;

	va_copy(again, args);
	len = vsnprintf(room, size, fmt, args);
	if (len < 0) {
		snprintf(room, size, "%s", fmt);
	} else if ((size_t)len >= size) {
		text = malloc((size_t)len + 1);
		if (text) {
			vsnprintf(text, (size_t)len + 1, fmt, again);
		} else {
			text = room;
			snprintf(room + size - sizeof(cut), sizeof(cut), "%s", cut);
		}
	}
	va_end(again);
	return text;
}

void fi_log(const struct fi_provider *prov, unsigned int level, unsigned int subsys, const char *func, int line,
	    const char *fmt, ...)
{
	int saved_errno = errno;
	char room[1024];
	char *text;
	va_list args;

	if (!fmt)
		return;
	va_start(args, fmt);
	text = format(room, sizeof(room), fmt, args);
	va_end(args);

	rs_fi_log(prov, level, subsys, func, line, text);
	if (text != room)
		free(text);
	errno = saved_errno;
}

int fi_param_define(const struct fi_provider *provider, const char *param_name, unsigned int type,
		    const char *help_string_fmt, ...)
{
	char room[1024];
	char *text;
	va_list args;
	int ret;

	if (!help_string_fmt)
		return -EINVAL;
	va_start(args, help_string_fmt);
	text = format(room, sizeof(room), help_string_fmt, args);
	va_end(args);

	ret = rs_fi_param_define(provider, param_name, type, text);
	if (text != room)
		free(text);
	return ret;
}
