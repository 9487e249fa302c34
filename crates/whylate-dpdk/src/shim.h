/* What of DPDK is called by burst, by many of them, or once: its inline functions need a C compiler.
 *
 * Numbers below zero are errors as in errno.h. Nothing here waits. */
#ifndef WHYLATE_DPDK_SHIM_H
#define WHYLATE_DPDK_SHIM_H

#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;
struct rte_mempool;

/* A frame in the memory of DPDK. Mirrored by raw.rs. */
struct why_frame {
	uint8_t *data;
	uint32_t length; /* bytes of the frame; of an empty one, the bytes that there is room for */
	uint16_t tag;    /* a VLAN tag that the device took out */
	uint16_t tagged; /* is there one? */
};

/* What a device says of itself. */
struct why_device {
	char driver[64];
	uint8_t mac[6];
	uint16_t mtu;
	uint16_t most_receive_queues;
	uint16_t most_send_queues;
	uint16_t most_receive_frames;
	uint16_t most_send_frames;
	uint16_t least_receive_frames;
	uint16_t least_send_frames;
	uint32_t least_buffer;
	int32_t socket;
	uint8_t is_pci;
};

/* How a device is to be set up. */
struct why_setup {
	uint16_t receive_frames;
	uint16_t send_frames;
	uint16_t send_queues;
	uint16_t mtu;
};

/* What a device counted. */
struct why_counts {
	uint64_t received;
	uint64_t sent;
	uint64_t missed;     /* the receiving ring was full */
	uint64_t bad;        /* received with an error */
	uint64_t not_sent;   /* refused when they were to be sent */
	uint64_t no_buffer;  /* nothing to receive into */
};

/* Starts the EAL; its messages are kept and nothing is printed. */
int why_start(int count, char **words);
/* Copies the last messages since the last time, `room` bytes at most; gives their length. */
size_t why_said(char *text, size_t room);
/* The directory that the EAL made for itself. */
const char *why_directory(void);

int why_probe(const char *words, const char *name, uint16_t *port);
int why_describe(uint16_t port, struct why_device *device);
struct rte_mempool *why_pool(const char *name, uint32_t count, uint32_t cache, uint16_t room,
			     int32_t socket, int one_piece, int *error);
/* Says in `setup` how many frames the rings really hold. */
int why_set_up(uint16_t port, struct why_setup *setup, struct rte_mempool *pool,
	       int32_t socket);
/* Stops the device and gives it back. */
void why_close(uint16_t port);
void why_free_pool(struct rte_mempool *pool);
/* 1 up, 0 down. */
int why_link(uint16_t port);
int why_counts(uint16_t port, struct why_counts *counts);
/* Pools whose name ends so. */
uint32_t why_pools(const char *ending);
/* Buffers of the pool that are free. */
uint32_t why_free_buffers(const struct rte_mempool *pool);

/* Whether the calling thread has caches of its own; makes them where it can. */
int why_join(void);

/* Receives and looks at what came; adds to `lost` as below. */
uint16_t why_receive(uint16_t port, struct rte_mbuf **buffers, struct why_frame *frames,
		     uint16_t most, uint64_t *lost);
/* What received buffers have. Frames in several pieces are joined; those that no buffer holds in one piece
 * are released and added to `lost`. Gives how many are left, which stand at the beginning. */
uint16_t why_look(struct rte_mbuf **buffers, struct why_frame *frames, uint16_t count,
		  uint64_t *lost);
/* Makes a frame of two buffers, for proofs. */
int why_chain(struct rte_mbuf *buffer, struct rte_mbuf *next);
void why_release(struct rte_mbuf **buffers, uint16_t count);
/* Takes `count` buffers out of the pool, or none. */
int why_take(struct rte_mempool *pool, struct rte_mbuf **buffers, struct why_frame *frames,
	     uint16_t count);
/* What a received buffer has. */
void why_show(struct rte_mbuf *buffer, struct why_frame *frame);
/* Gives buffers the lengths of `frames`. */
void why_finish(struct rte_mbuf **buffers, const struct why_frame *frames, uint16_t count);
/* Sends; gives how many the device took, from the first on. */
uint16_t why_send(uint16_t port, uint16_t queue, struct rte_mbuf **buffers, uint16_t count);

/* For passing on as received, without a look at the frames' bytes. */
uint16_t why_receive_bare(uint16_t port, struct rte_mbuf **buffers, uint16_t most);
/* Whether each frame is in one piece, has from `shortest` to `longest` bytes and no tag beside it; in
 * `bytes` how long all of them are together. */
int why_are_plain(struct rte_mbuf *const *buffers, uint16_t count, uint32_t shortest,
		  uint32_t longest, uint64_t *bytes);

/* A burst that goes from one device to another. Mirrored by raw.rs. */
struct why_pass {
	uint64_t bytes; /* of all frames */
	uint32_t shortest;
	uint32_t longest;
	uint16_t from;
	uint16_t to;
	uint16_t queue; /* of `to` */
	uint16_t most;
	uint16_t sent;
	uint16_t odd; /* not all are plain: none was sent */
};

/* Receives a burst and sends it where all of it is plain; gives how many frames were received. Those
 * that were not sent are the caller's. */
uint16_t why_pass(struct why_pass *pass, struct rte_mbuf **buffers);

/* One way of frames that are only counted. Mirrored by raw.rs. */
struct why_way {
	uint64_t received;
	uint64_t sent;
	uint64_t bursts;
	uint64_t empty;
	uint16_t from;
	uint16_t to;
	uint16_t queue; /* of `to` */
	uint16_t most;  /* WHY_BURST at most */
};

#define WHY_BURST 64

/* Passes a burst on by each of two ways, again and again; what a device does not take is released. */
void why_rounds(struct why_way *ways, uint32_t rounds);

#endif
