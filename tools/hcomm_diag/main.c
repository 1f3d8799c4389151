// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hcomm_diag: what state the links are in.
 *
 *	links		collects and judges; its header is the model
 *	ports, netdev, mtu, hcomm	where facts come from
 *	table, grid, json		the two forms
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hcomm.h>

#include "links.h"
#include "standard.h"
#include "usage.h"

enum {
	EXIT_OK,
	EXIT_FAIL,			/* a link has trouble */
	EXIT_USAGE,
	EXIT_CANNOT,
};

enum {
	OPTION_LINK_STATUS = 256,
	OPTION_JSON,
	OPTION_VERSION,
};

static const char usage[] =
"usage: hcomm_diag --link-status [--json]\n"
"       hcomm_diag --version\n"
"\n"
"  --link-status  every RDMA port and every path of hcomm: state, network\n"
"                 device, speed, MTU, GID types, bytes, retransmissions, and the\n"
"                 last failure: why a path was lost, or could not be connected\n"
"  --json         the same for programs\n"
"\n"
"Exit status: 0 all is well, 1 a port or path is not, 2 usage, 3 cannot tell\n"
"(no RDMA).\n";

static const struct option options[] = {
	{ "link-status", no_argument, NULL, OPTION_LINK_STATUS },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{}
};

static int cannot(const char *what, int error)
{
	if (error == -EPROTONOSUPPORT)
		fputs("hcomm_diag: this kernel has no RDMA: load a driver of an adapter, or rdma_rxe\n",
		      stderr);
	else
		fprintf(stderr, "hcomm_diag: %s: %s\n", what,
			strerror(-error));
	return EXIT_CANNOT;
}

static int written(int code)
{
	return standard_output_written("hcomm_diag") ? code : EXIT_CANNOT;
}

static int link_status(bool json)
{
	struct diag_links links;
	const char *what;
	int error = diag_links_get(&links, &what);
	bool printed;
	int code;

	if (error)
		return cannot(what, error);
	if (!links.nports) {
		fputs("hcomm_diag: there is no RDMA device: load the driver of an adapter, or rdma link add\n",
		      stderr);
		diag_links_put(&links);
		return EXIT_CANNOT;
	}
	printed = json ? diag_json_print(&links) : diag_table_print(&links);
	code = diag_links_failed(&links) ? EXIT_FAIL : EXIT_OK;
	diag_links_put(&links);
	if (!printed)
		return cannot("the output", -ENOMEM);
	return written(code);
}

__attribute__((format(printf, 1, 2)))
static int wrong_usage(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	usage_wrong("hcomm_diag", format, ap);
	va_end(ap);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	bool status = false, json = false;
	int option;

	standard_files_open();
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case OPTION_LINK_STATUS:
			status = true;
			break;
		case OPTION_JSON:
			json = true;
			break;
		case OPTION_VERSION:
			printf("hcomm_diag %d.%d.%d\n", HCOMM_MAJOR,
			       HCOMM_MINOR, HCOMM_PATCH);
			return written(EXIT_OK);
		case 'h':
			fputs(usage, stdout);
			return written(EXIT_OK);
		default:	/* getopt_long() has said why */
			return wrong_usage("an option cannot be used");
		}
	}
	if (optind < argc)
		return wrong_usage("'%s' is no option", argv[optind]);
	if (!status)
		return wrong_usage("nothing to do: --link-status is missing");
	return link_status(json);
}
