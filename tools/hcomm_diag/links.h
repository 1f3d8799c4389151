/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every RDMA port of this machine, and every path of hcomm over them, as the
 * kernel describes them. What could not be learned is 0, empty, or flagged.
 */
#ifndef DIAG_LINKS_H
#define DIAG_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag_port {
	/* RDMA netlink */
	char device[64];
	uint32_t number;
	char protocol[16];
	bool software;
	uint8_t state;
	uint8_t physical;
	bool has_retransmissions;
	uint64_t retransmissions;
	/* the network device beneath, route netlink */
	uint32_t netdev_index;
	char netdev[64];
	bool netdev_up;
	bool netdev_carrier;
	uint32_t netdev_mtu;
	bool has_bytes;
	uint64_t rx_bytes;
	uint64_t tx_bytes;
	/* the RDMA device's own files, and verbs */
	double speed_gbps;
	char gid_types[48];
	uint32_t rdma_mtu;		/* active */
	/* hcomm's files */
	char instance[16];		/* owner */
	char address[48];
	char last_error[64];		/* diag_path_loss() of a path over it */
	/* our verdict; empty: nothing is wrong */
	char trouble[96];
};

struct diag_path {
	char instance[16];
	char peer[40];			/* id of the peer's instance */
	char peer_instance[16];		/* its name, if it is of this kernel */
	char name[32];			/* of the path in its session */
	char state[16];
	char port[80];			/* DEVICE/NUMBER, "" while there is none */
	char local[48];			/* address */
	char remote[48];
	uint64_t tx_bytes;
	uint64_t rx_bytes;
	uint64_t replayed;		/* parts sent again */
	uint64_t reconnects;
	char last_error[64];		/* of a loss or of a try to connect */
	char trouble[96];
};

struct diag_links {
	bool module_loaded;
	char module[32];		/* version */
	struct diag_port *ports;	/* sorted by device and number */
	size_t nports;
	struct diag_path *paths;	/* sorted by instance, peer and name */
	size_t npaths;
};

/* 0 or a negative errno; then *@what says what could not be asked. */
int diag_links_get(struct diag_links *links, const char **what);
void diag_links_put(struct diag_links *links);

/* What is wrong with each port and path that was collected. */
void diag_links_judge(struct diag_links *links);

/* Ports and paths that have trouble. */
size_t diag_links_failed(const struct diag_links *links);

/*
 * The last error of a path, "" while it is up and was never lost: then it is
 * that of a try to connect before the first one that succeeded.
 */
const char *diag_path_loss(const struct diag_path *path);

const char *diag_state_name(uint8_t state);
const char *diag_physical_name(uint8_t physical);

/* The parts. */
int diag_ports_get(struct diag_links *links);	/* RDMA netlink, its files */
int diag_netdevs_get(struct diag_links *links);	/* route netlink */
void diag_mtus_get(struct diag_links *links);	/* verbs; 0 where not allowed */
int diag_hcomm_get(struct diag_links *links);	/* hcomm's files */

/* The two forms, to standard output; false without memory. */
bool diag_table_print(const struct diag_links *links);
bool diag_json_print(const struct diag_links *links);

#endif
