// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Links for people. "-" is what is not known, or does not exist. */
#include <inttypes.h>
#include <stdio.h>

#include "grid.h"
#include "links.h"

static const char *or_dash(const char *text)
{
	return *text ? text : "-";
}

static void number(struct grid *grid, bool known, uint64_t value)
{
	if (known)
		grid_cell(grid, "%" PRIu64, value);
	else
		grid_cell(grid, "-");
}

static const char *netdev_state(const struct diag_port *port)
{
	if (!port->netdev_index)
		return "-";
	if (!port->netdev_up)
		return "down";
	return port->netdev_carrier ? "up" : "no-carrier";
}

static void verdict(struct grid *grid, const char *trouble)
{
	grid_cell(grid, "%s%s", *trouble ? "FAIL: " : "ok", trouble);
}

static void port_row(struct grid *grid, const struct diag_port *port)
{
	grid_cell(grid, "%s/%u", port->device, port->number);
	grid_cell(grid, "%s", or_dash(port->instance));
	grid_cell(grid, "%s%s", port->protocol, port->software ? " (soft)" : "");
	grid_cell(grid, "%s", diag_state_name(port->state));
	grid_cell(grid, "%s", or_dash(port->netdev));
	grid_cell(grid, "%s", netdev_state(port));
	if (port->speed_gbps > 0)
		grid_cell(grid, "%g", port->speed_gbps);
	else
		grid_cell(grid, "-");
	number(grid, port->netdev_mtu, port->netdev_mtu);
	number(grid, port->rdma_mtu, port->rdma_mtu);
	grid_cell(grid, "%s", or_dash(port->gid_types));
	number(grid, port->has_bytes, port->rx_bytes);
	number(grid, port->has_bytes, port->tx_bytes);
	number(grid, port->has_retransmissions, port->retransmissions);
	grid_cell(grid, "%s", or_dash(port->last_error));
	verdict(grid, port->trouble);
}

static bool print_ports(const struct diag_links *links)
{
	static const char *const titles[] = {
		"<Port", "<Owner", "<Protocol", "<State", "<Netdev", "<Link",
		"Gb/s", "MTU", "RDMA MTU", "<GID types", "Bytes in",
		"Bytes out", "Resent", "<Last failure", "<Verdict", NULL,
	};
	struct grid grid;

	grid_begin(&grid, titles);
	for (size_t i = 0; i < links->nports; i++)
		port_row(&grid, &links->ports[i]);
	return grid_end(&grid);
}

static void path_row(struct grid *grid, const struct diag_path *path)
{
	grid_cell(grid, "%s", path->instance);
	if (*path->peer_instance)
		grid_cell(grid, "%s", path->peer_instance);
	else
		grid_cell(grid, "%.8s", path->peer);
	grid_cell(grid, "%s", path->name);
	grid_cell(grid, "%s", or_dash(path->state));
	grid_cell(grid, "%s", or_dash(path->port));
	grid_cell(grid, "%s", or_dash(path->local));
	grid_cell(grid, "%s", or_dash(path->remote));
	number(grid, true, path->rx_bytes);
	number(grid, true, path->tx_bytes);
	number(grid, true, path->replayed);
	number(grid, true, path->reconnects);
	grid_cell(grid, "%s", or_dash(diag_path_loss(path)));
	verdict(grid, path->trouble);
}

static bool print_paths(const struct diag_links *links)
{
	static const char *const titles[] = {
		"<Instance", "<Peer", "<Path", "<State", "<Port", "<Local",
		"<Remote", "Bytes in", "Bytes out", "Resent", "Reconnects",
		"<Last failure", "<Verdict", NULL,
	};
	struct grid grid;

	grid_begin(&grid, titles);
	for (size_t i = 0; i < links->npaths; i++)
		path_row(&grid, &links->paths[i]);
	return grid_end(&grid);
}

static void print_end(const struct diag_links *links)
{
	size_t failed = diag_links_failed(links);

	if (failed)
		printf("\n%zu of %zu FAIL\n", failed,
		       links->nports + links->npaths);
	else
		puts("\nall ok");
}

bool diag_table_print(const struct diag_links *links)
{
	if (links->module_loaded)
		printf("hcomm %s\n\n", or_dash(links->module));
	else
		puts("hcomm.ko is not loaded: ports have no owner, there are no paths\n");
	if (!print_ports(links))
		return false;
	if (links->npaths)
		puts("");
	else if (links->module_loaded)
		puts("\nno paths: no group has ranks on another instance");
	if (links->npaths && !print_paths(links))
		return false;
	print_end(links);
	return true;
}
