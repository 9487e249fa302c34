/* See shim.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "shim.h"

/* Messages of the EAL, the last ones: what does not fit drives out the oldest. */
static char said[8192];
static size_t said_length;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t keep(void *cookie, const char *text, size_t length)
{
	size_t all = length;
	(void)cookie;
	pthread_mutex_lock(&said_lock);
	if (length > sizeof(said)) {
		text += length - sizeof(said);
		length = sizeof(said);
	}
	if (said_length + length > sizeof(said)) {
		size_t over = said_length + length - sizeof(said);
		memmove(said, said + over, said_length - over);
		said_length -= over;
	}
	memcpy(said + said_length, text, length);
	said_length += length;
	pthread_mutex_unlock(&said_lock);
	return (ssize_t)all;
}

size_t why_said(char *text, size_t room)
{
	size_t from, length;
	pthread_mutex_lock(&said_lock);
	from = said_length > room ? said_length - room : 0;
	length = said_length - from;
	memcpy(text, said + from, length);
	said_length = 0;
	pthread_mutex_unlock(&said_lock);
	return length;
}

int why_start(int count, char **words)
{
	static FILE *stream;
	cookie_io_functions_t functions = { .write = keep };
	if (stream == NULL) {
		stream = fopencookie(NULL, "w", functions);
		if (stream == NULL)
			return -errno;
		setvbuf(stream, NULL, _IOLBF, 1024);
	}
	if (rte_openlog_stream(stream) != 0)
		return -EIO;
	if (rte_eal_init(count, words) < 0)
		return -(rte_errno != 0 ? rte_errno : EIO);
	return 0;
}

const char *why_directory(void)
{
	return rte_eal_get_runtime_dir();
}

int why_probe(const char *words, const char *name, uint16_t *port)
{
	int error;
	/* A card that the EAL was told of is there already. */
	if (rte_eth_dev_get_port_by_name(name, port) == 0)
		return 0;
	error = rte_dev_probe(words);
	if (error != 0)
		return error;
	/* Probed, and no driver of network cards took it. */
	if (rte_eth_dev_get_port_by_name(name, port) != 0)
		return -ENODEV;
	return 0;
}

int why_describe(uint16_t port, struct why_device *device)
{
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	uint16_t mtu = 0;
	int error = rte_eth_dev_info_get(port, &info);
	if (error != 0)
		return error;
	memset(device, 0, sizeof(*device));
	snprintf(device->driver, sizeof(device->driver), "%s", info.driver_name);
	if (rte_eth_macaddr_get(port, &mac) == 0)
		memcpy(device->mac, mac.addr_bytes, sizeof(device->mac));
	if (rte_eth_dev_get_mtu(port, &mtu) == 0)
		device->mtu = mtu;
	if (info.max_mtu != 0 && device->mtu > info.max_mtu)
		device->mtu = info.max_mtu;
	device->most_receive_queues = info.max_rx_queues;
	device->most_send_queues = info.max_tx_queues;
	device->most_receive_frames = info.rx_desc_lim.nb_max;
	device->most_send_frames = info.tx_desc_lim.nb_max;
	device->least_receive_frames = info.rx_desc_lim.nb_min;
	device->least_send_frames = info.tx_desc_lim.nb_min;
	device->least_buffer = info.min_rx_bufsize;
	device->socket = rte_eth_dev_socket_id(port);
	device->is_pci = strchr(rte_dev_name(info.device), ':') != NULL;
	return 0;
}

/* Objects one behind the other, wherever pages end, for nothing looks at their physical addresses. */
static struct rte_mempool *in_one_piece(const char *name, uint32_t count, uint32_t cache,
					uint16_t data, int32_t socket)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = data };
	struct rte_mempool *pool =
		rte_mempool_create_empty(name, count, sizeof(struct rte_mbuf) + data, cache,
					 sizeof(private), socket, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	int error;
	if (pool == NULL)
		return NULL;
	error = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (error == 0) {
		rte_pktmbuf_pool_init(pool, &private);
		error = rte_mempool_populate_default(pool);
	}
	if (error >= 0 && pool->nb_mem_chunks != 1)
		error = -ENOMEM;
	if (error < 0) {
		rte_mempool_free(pool);
		rte_errno = -error;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

struct rte_mempool *why_pool(const char *name, uint32_t count, uint32_t cache, uint16_t room,
			     int32_t socket, int one_piece, int *error)
{
	uint16_t data = room + RTE_PKTMBUF_HEADROOM;
	struct rte_mempool *pool =
		one_piece ? in_one_piece(name, count, cache, data, socket)
			  : rte_pktmbuf_pool_create(name, count, cache, 0, data, socket);
	*error = pool == NULL ? -rte_errno : 0;
	return pool;
}

int why_set_up(uint16_t port, struct why_setup *setup, struct rte_mempool *pool,
	       int32_t socket)
{
	struct rte_eth_conf conf;
	uint16_t receive = setup->receive_frames, send = setup->send_frames, queue;
	int error;
	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = setup->mtu;
	error = rte_eth_dev_configure(port, 1, setup->send_queues, &conf);
	if (error != 0)
		return error;
	error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &receive, &send);
	if (error != 0)
		return error;
	setup->receive_frames = receive;
	setup->send_frames = send;
	error = rte_eth_rx_queue_setup(port, 0, receive, socket, NULL, pool);
	for (queue = 0; error == 0 && queue < setup->send_queues; queue++)
		error = rte_eth_tx_queue_setup(port, queue, send, socket, NULL);
	if (error == 0)
		error = rte_eth_dev_start(port);
	if (error != 0)
		return error;
	/* Frames for others are counted, not hidden; devices without filters refuse, and hear all. */
	(void)rte_eth_promiscuous_enable(port);
	return 0;
}

void why_close(uint16_t port)
{
	struct rte_eth_dev_info info;
	int known = rte_eth_dev_info_get(port, &info);
	(void)rte_eth_dev_stop(port);
	(void)rte_eth_dev_close(port);
	if (known == 0 && info.device != NULL)
		(void)rte_dev_remove(info.device);
}

void why_free_pool(struct rte_mempool *pool)
{
	rte_mempool_free(pool);
}

int why_link(uint16_t port)
{
	struct rte_eth_link link;
	int error;
	memset(&link, 0, sizeof(link));
	error = rte_eth_link_get_nowait(port, &link);
	if (error != 0)
		return error;
	return link.link_status == RTE_ETH_LINK_UP;
}

int why_counts(uint16_t port, struct why_counts *counts)
{
	struct rte_eth_stats stats;
	int error = rte_eth_stats_get(port, &stats);
	if (error != 0)
		return error;
	counts->received = stats.ipackets;
	counts->sent = stats.opackets;
	counts->missed = stats.imissed;
	counts->bad = stats.ierrors;
	counts->not_sent = stats.oerrors;
	counts->no_buffer = stats.rx_nombuf;
	return 0;
}

struct counting {
	const char *ending;
	uint32_t pools;
};

static void count_one(struct rte_mempool *pool, void *arg)
{
	struct counting *counting = arg;
	size_t length = strlen(pool->name), ending = strlen(counting->ending);
	if (length >= ending && strcmp(pool->name + length - ending, counting->ending) == 0)
		counting->pools++;
}

uint32_t why_pools(const char *ending)
{
	struct counting counting = { .ending = ending };
	rte_mempool_walk(count_one, &counting);
	return counting.pools;
}

uint32_t why_free_buffers(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool);
}

/* A thread that the EAL did not start has no caches of buffers until it is registered. */
static pthread_key_t leaving;
static pthread_once_t leaving_made = PTHREAD_ONCE_INIT;

static void leave(void *joined)
{
	(void)joined;
	rte_thread_unregister();
}

static void make_leaving(void)
{
	(void)pthread_key_create(&leaving, leave);
}

int why_join(void)
{
	if (rte_lcore_id() != LCORE_ID_ANY)
		return 1;
	(void)pthread_once(&leaving_made, make_leaving);
	if (rte_thread_register() != 0)
		return 0;
	(void)pthread_setspecific(leaving, &leaving);
	return 1;
}

static inline void show(struct rte_mbuf *buffer, struct why_frame *frame)
{
	frame->data = rte_pktmbuf_mtod(buffer, uint8_t *);
	frame->length = rte_pktmbuf_data_len(buffer);
	frame->tagged = (buffer->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0;
	frame->tag = buffer->vlan_tci;
}

uint16_t why_look(struct rte_mbuf **buffers, struct why_frame *frames, uint16_t count,
		  uint64_t *lost)
{
	uint16_t at, left = 0;
	for (at = 0; at < count; at++) {
		struct rte_mbuf *buffer = buffers[at];
		/* A frame in several pieces is rare, and nobody behind this knows pieces. */
		if (unlikely(buffer->nb_segs > 1) && rte_pktmbuf_linearize(buffer) != 0) {
			rte_pktmbuf_free(buffer);
			(*lost)++;
			continue;
		}
		buffers[left] = buffer;
		show(buffer, &frames[left]);
		left++;
	}
	return left;
}

uint16_t why_receive(uint16_t port, struct rte_mbuf **buffers, struct why_frame *frames,
		     uint16_t most, uint64_t *lost)
{
	uint16_t count = rte_eth_rx_burst(port, 0, buffers, most), at;
	for (at = 0; at < count; at++)
		rte_prefetch0(rte_pktmbuf_mtod(buffers[at], void *));
	return why_look(buffers, frames, count, lost);
}

int why_chain(struct rte_mbuf *buffer, struct rte_mbuf *next)
{
	return rte_pktmbuf_chain(buffer, next);
}

void why_release(struct rte_mbuf **buffers, uint16_t count)
{
	rte_pktmbuf_free_bulk(buffers, count);
}

int why_take(struct rte_mempool *pool, struct rte_mbuf **buffers, struct why_frame *frames,
	     uint16_t count)
{
	uint16_t at;
	if (rte_pktmbuf_alloc_bulk(pool, buffers, count) != 0)
		return -ENOBUFS;
	for (at = 0; at < count; at++) {
		show(buffers[at], &frames[at]);
		frames[at].length = rte_pktmbuf_tailroom(buffers[at]);
	}
	return 0;
}

void why_show(struct rte_mbuf *buffer, struct why_frame *frame)
{
	/* As above; one that cannot be joined shows nothing, and is counted by whoever looks at all. */
	int whole = likely(buffer->nb_segs == 1) || rte_pktmbuf_linearize(buffer) == 0;
	show(buffer, frame);
	if (unlikely(!whole))
		frame->length = 0;
}

void why_finish(struct rte_mbuf **buffers, const struct why_frame *frames, uint16_t count)
{
	uint16_t at;
	for (at = 0; at < count; at++) {
		buffers[at]->data_len = (uint16_t)frames[at].length;
		buffers[at]->pkt_len = frames[at].length;
	}
}

uint16_t why_send(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, buffers, count);
}

uint16_t why_receive_bare(uint16_t port, struct rte_mbuf **buffers, uint16_t most)
{
	return rte_eth_rx_burst(port, 0, buffers, most);
}

/* The driver has just written what is read here, and wrote it into the first line of each buffer; the
 * frame itself stays where it is. No branch: what is odd is looked for once behind the loop. */
static inline int are_plain(struct rte_mbuf *const *buffers, uint16_t count, uint32_t shortest,
			    uint32_t longest, uint64_t *bytes)
{
	const uint32_t span = longest - shortest;
	uint64_t all = 0, flags = 0;
	uint32_t unfit = 0;
	uint16_t pieces = 0, at;
	for (at = 0; at < count; at++) {
		const struct rte_mbuf *buffer = buffers[at];
		all += buffer->pkt_len;
		unfit |= buffer->pkt_len - shortest > span;
		pieces |= buffer->nb_segs;
		flags |= buffer->ol_flags;
	}
	*bytes = all;
	/* None has 0 pieces. */
	return unfit == 0 && pieces <= 1 && (flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0;
}

int why_are_plain(struct rte_mbuf *const *buffers, uint16_t count, uint32_t shortest,
		  uint32_t longest, uint64_t *bytes)
{
	return are_plain(buffers, count, shortest, longest, bytes);
}

uint16_t why_pass(struct why_pass *pass, struct rte_mbuf **buffers)
{
	uint16_t count = rte_eth_rx_burst(pass->from, 0, buffers, pass->most);
	if (count == 0)
		return 0;
	pass->odd = !are_plain(buffers, count, pass->shortest, pass->longest, &pass->bytes);
	pass->sent = 0;
	if (likely(!pass->odd))
		pass->sent = rte_eth_tx_burst(pass->to, pass->queue, buffers, count);
	return count;
}

void why_rounds(struct why_way *ways, uint32_t rounds)
{
	struct rte_mbuf *buffers[WHY_BURST];
	for (; rounds > 0; rounds--) {
		struct why_way *way;
		for (way = ways; way < ways + 2; way++) {
			uint16_t sent, count = rte_eth_rx_burst(way->from, 0, buffers, way->most);
			if (unlikely(count == 0)) {
				way->empty++;
				continue;
			}
			way->received += count;
			way->bursts++;
			sent = rte_eth_tx_burst(way->to, way->queue, buffers, count);
			way->sent += sent;
			if (unlikely(sent < count))
				rte_pktmbuf_free_bulk(buffers + sent, count - sent);
		}
	}
}
