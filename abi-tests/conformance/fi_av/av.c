/* What the cases of this page share. */
#include "av.h"

struct fid_av *open_kind(struct bed *bed, enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = { .type = type, .flags = flags };
	struct fid_av *av;
	int ret = fi_av_open(bed->domain, &attr, &av, NULL);

	NEED(!lacking(ret), "fi_av_open with flags 0x%llx: %s", (unsigned long long) flags, fi_strerror(-ret));
	CHECK(ret == 0, "fi_av_open with flags 0x%llx: %s", (unsigned long long) flags, fi_strerror(-ret));
	return av;
}

void made_up(struct bed *bed, unsigned first, unsigned count, char *names)
{
	char name[NAME_MAX_LEN];
	size_t len;

	while (count--) {
		made_up_name(bed, first++, name, &len);
		names += pack(bed, names, name, len);
	}
}

bool is_address(struct bed *bed, const char *found, const char *name)
{
	const char *found_rest, *name_rest;

	if (is_ip(bed)) /* family, port, host: what follows is padding */
		return !memcmp(found, name, 8);
	if (bed->info->addr_format == FI_ADDR_IB_UD) /* GID and queue pair */
		return !memcmp(found, name, 20);
	found_rest = strstr(found, "://");
	name_rest = strstr(name, "://");
	return !strcmp(found_rest ? found_rest + 3 : found, name_rest ? name_rest + 3 : name);
}

void is_name(struct fid_av *av, struct bed *bed, fi_addr_t addr, unsigned number)
{
	char name[NAME_MAX_LEN], found[NAME_MAX_LEN] = "";
	size_t len, found_len = sizeof(found);

	made_up_name(bed, number, name, &len);
	OK(fi_av_lookup(av, addr, found, &found_len));
	CHECK(is_address(bed, found, name), "address %u is not where it was put", number);
}

void with_a_bad_one(struct bed *bed, char *names)
{
	char name[NAME_MAX_LEN];
	size_t len;

	made_up_name(bed, 1, name, &len);
	names += pack(bed, names, name, len);
	if (!bad_name(bed, name, &len))
		SKIP("no address of this format is known to be bad");
	names += pack(bed, names, name, len);
	made_up_name(bed, 3, name, &len);
	pack(bed, names, name, len);
}

fi_addr_t source_seen(struct bed *bed)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t source = 99;
	static char in[8], out[8] = "source";
	long until = now_ms() + GIVE_UP_MS;
	ssize_t ret;

	POST(bed, post_recv(bed->side[1].ep, in, sizeof(in), FI_ADDR_UNSPEC, 1, 0, ctx(1)));
	POST(bed, post_send(bed->side[0].ep, out, sizeof(out), bed->side[1].addr, 1, ctx(2)));
	COMPLETION(bed, bed->side[0].tx, ctx(2));
	while ((ret = fi_cq_readfrom(bed->side[1].rx, &entry, 1, &source)) == -FI_EAGAIN && now_ms() < until)
		progress(bed);
	CHECK(ret == 1, "fi_cq_readfrom: %zd", ret);
	return source;
}
