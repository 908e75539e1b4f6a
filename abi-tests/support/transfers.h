/*
 * Cases that fi_msg(3) and fi_tagged(3) have in common: the program says which of the two it asks about.
 */
#ifndef TRANSFERS_H
#define TRANSFERS_H

#include "fabric.h"

extern const bool tagged; /* the program's */

/* One call of each kind, tagged or not; the tag of an untagged one is ignored. */
ssize_t post_send(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t to, uint64_t tag, void *context);
ssize_t post_recv(struct fid_ep *ep, void *buf, size_t len, fi_addr_t from, uint64_t tag, uint64_t ignore, void *context);
ssize_t post_sendmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t to, uint64_t tag, uint64_t data,
		     void *context, uint64_t flags);
ssize_t post_recvmsg(struct fid_ep *ep, const struct iovec *iov, size_t count, fi_addr_t from, uint64_t tag,
		     uint64_t ignore, void *context, uint64_t flags);

void send_and_receive(void);
void vectors(void);
void message_structures(void);
void too_many_pieces(void);
void nothing_to_send(void);
void nothing_by_message(void);
void inject_frees_the_buffer(void);
void inject_at_its_limit(void);
void inject_beyond_its_limit(void);
void inject_flag_completes(void);
void remote_cq_data(void);
void no_cq_data_unless_sent(void);
void sizes_expected(void);
void sizes_unexpected(void);
void sizes_between_processes(void);
void smaller_than_the_buffer(void);
void order_of_posted_receives(void);
void order_of_unexpected_messages(void);
void order_across_sizes(void);
void flood(void);
void truncated_expected(void);
void truncated_unexpected(void);
void cancel_a_receive(void);
void cancel_what_has_ended(void);
void cancel_one_of_many(void);
void from_any_source(void);
void to_itself(void);
void both_ways_at_once(void);
void all_to_all(void);
void fence(void);
void more_to_come(void);
void directed_receive(void);
void directed_unexpected(void);
void directed_exact_only(void);
void not_before_enable(void);
void multi_receive_packs(void);
void multi_receive_releases_at_the_minimum(void);
void multi_receive_then_the_next_buffer(void);
void multi_receive_of_unexpected(void);
void multi_receive_says_so_without_completions(void);
void ping_pong_between_processes(void);
void auto_progress(void);

#define TRANSFER_TESTS                                                                                          \
	TEST(send_and_receive), TEST(vectors), TEST(message_structures), TEST(too_many_pieces),                 \
	TEST(nothing_to_send), TEST(nothing_by_message), TEST(inject_frees_the_buffer),                         \
	TEST(inject_at_its_limit), TEST(inject_beyond_its_limit), TEST(inject_flag_completes),                  \
	TEST(remote_cq_data), TEST(no_cq_data_unless_sent), TEST(sizes_expected), TEST(sizes_unexpected),       \
	TEST(sizes_between_processes), TEST(smaller_than_the_buffer), TEST(order_of_posted_receives),           \
	TEST(order_of_unexpected_messages), TEST(order_across_sizes), TEST(flood), TEST(truncated_expected),    \
	TEST(truncated_unexpected), TEST(cancel_a_receive), TEST(cancel_what_has_ended),                        \
	TEST(cancel_one_of_many), TEST(from_any_source), TEST(to_itself), TEST(both_ways_at_once),              \
	TEST(all_to_all), TEST(fence), TEST(more_to_come), TEST(directed_receive), TEST(directed_unexpected),   \
	TEST(directed_exact_only), TEST(not_before_enable), TEST(multi_receive_packs),                          \
	TEST(multi_receive_releases_at_the_minimum), TEST(multi_receive_then_the_next_buffer),                  \
	TEST(multi_receive_of_unexpected), TEST(multi_receive_says_so_without_completions),                     \
	TEST(ping_pong_between_processes), TEST(auto_progress)

#endif
