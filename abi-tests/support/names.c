/* The names of fabric.h: how an endpoint's is learnt, made up, packed and inserted, in the format of each provider. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include "fabric.h"

void learn_name(struct side *side)
{
	side->name_len = sizeof(side->name);
	OK(fi_getname(&side->ep->fid, side->name, &side->name_len));
	CHECK(side->name_len > 0 && side->name_len <= sizeof(side->name), "a name of %zu bytes", side->name_len);
}

bool is_ip(struct bed *bed)
{
	return bed->info->addr_format == FI_SOCKADDR_IN || bed->info->addr_format == FI_SOCKADDR ||
	       bed->info->addr_format == FI_SOCKADDR_IN6;
}

bool is_auto(struct bed *bed)
{
	return !strcmp(bed->info->fabric_attr->prov_name, "auto");
}

uint16_t free_port(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	static unsigned asked;
	int fd, held;

	/* Below 32768: from there on the kernel gives ports to outgoing connections. */
	while (asked < 1000) {
		uint16_t port = (uint16_t) (20000 + ((unsigned) getpid() + asked++) % 10000);

		sin.sin_port = htons(port);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		held = bind(fd, (struct sockaddr *) &sin, sizeof(sin));
		close(fd);
		if (!held)
			return port;
	}
	CHECK(0, "no port is free");
}

size_t pack(struct bed *bed, char *to, const char *name, size_t len)
{
	/* Strings stand behind one another, each with its end; what fi_getname says of their size may be more. */
	if (bed->info->addr_format == FI_ADDR_STR)
		len = strlen(name) + 1;
	memcpy(to, name, len);
	return len;
}

int insert_sides(struct bed *bed, struct fid_av *av, int first, int count, fi_addr_t *addrs, uint64_t flags, void *context)
{
	char names[SIDES * NAME_MAX_LEN];
	size_t used = 0;
	int i;

	for (i = first; i < first + count; i++)
		used += pack(bed, names + used, bed->side[i].name, bed->side[i].name_len);
	return fi_av_insert(av, names, (size_t) count, addrs, flags, context);
}

#define IB_UD_NAME 32 /* bytes of an address of FI_ADDR_IB_UD */

/* Where endpoints of the device are: the name of one that comes and goes. */
static const char *place_of(struct bed *bed)
{
	static struct side side;
	struct fi_av_attr attr = { 0 };
	struct setup usual = { 0 };
	struct bed one = *bed;

	if (side.name_len)
		return side.name;
	OK(fi_av_open(bed->domain, &attr, &one.av, NULL));
	open_bed_side(&one, &usual, 0, bed->info);
	OK(fi_enable(one.side[0].ep));
	learn_name(&one.side[0]);
	CHECK(one.side[0].name_len == IB_UD_NAME, "a name of %zu bytes", one.side[0].name_len);
	side = one.side[0];
	close_ep(&one.side[0]);
	shut(one.side[0].tx);
	shut(one.side[0].rx);
	shut(one.av);
	return side.name;
}

void string_name(struct bed *bed, char name[NAME_MAX_LEN], const char *what, unsigned number, uint16_t port)
{
	/* auto's have the place of the network in them, and are all of one length. */
	if (is_auto(bed))
		auto_name(name, number + 1, INADDR_LOOPBACK, port);
	else
		snprintf(name, NAME_MAX_LEN, "fi_shm://%s-%u", what, number);
}

void made_up_name(struct bed *bed, unsigned number, char *name, size_t *len)
{
	if (bed->info->addr_format == FI_ADDR_IB_UD) {
		/* A queue pair there that nobody has, as their numbers begin low; the number stands behind the GID. */
		uint32_t pair = 0x800000 + number;

		memcpy(name, place_of(bed), IB_UD_NAME);
		memcpy(name + 16, &pair, sizeof(pair));
		*len = IB_UD_NAME;
		return;
	}
	if (is_ip(bed)) {
		struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(7) };

		sin.sin_addr.s_addr = htonl(0x7f010000u + number);
		memcpy(name, &sin, sizeof(sin));
		*len = sizeof(sin);
	} else {
		string_name(bed, name, "nobody", number, 7);
		*len = strlen(name) + 1;
	}
}

bool bad_name(struct bed *bed, char *name, size_t *len)
{
	if (is_ip(bed)) { /* no host, no port */
		memset(name, 0, sizeof(struct sockaddr_in));
		*len = sizeof(struct sockaddr_in);
		return true;
	}
	if (bed->info->addr_format == FI_ADDR_IB_UD) { /* no place, no queue pair */
		memset(name, 0, IB_UD_NAME);
		*len = IB_UD_NAME;
		return true;
	}
	if (bed->info->addr_format != FI_ADDR_STR)
		return false;
	/* Longer than the 256 bytes that a name may have. */
	snprintf(name, NAME_MAX_LEN, "fi_shm://%0*d", NAME_MAX_LEN - 20, 0);
	*len = strlen(name) + 1;
	return true;
}
