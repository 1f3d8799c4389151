// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What hcomm says of itself: Documentation/ABI/testing/sysfs-class-hcomm.
 * Directories are read in the order of their names, numbers counting as such.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "links.h"

/* Where a walk through the directories is. */
struct place {
	struct diag_links *links;
	char path[400];
	const char *instance;
	const char *peer;
};

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* False when there is no such place: no name of sysfs is that long. */
static bool enter(struct place *below, const struct place *place,
		  const char *name)
{
	size_t room = sizeof(below->path);

	*below = *place;
	return snprintf(below->path, room, "%s/%s", place->path, name) <
	       (int)room;
}

/*
 * Calls @take for every entry of @name in @place, which may not exist or go
 * away: what is not there is not listed. 0 or a negative errno.
 */
static int for_each(const struct place *place, const char *name,
		    int (*take)(const struct place *place, const char *name))
{
	struct dirent **entries;
	struct place dir;
	int count, error = 0;

	if (!enter(&dir, place, name))
		return 0;
	count = scandir(dir.path, &entries, not_hidden, versionsort);
	if (count < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < count; i++) {
		struct place below;

		if (!error && enter(&below, &dir, entries[i]->d_name))
			error = take(&below, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return error;
}

static void copy(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%.*s", (int)room - 1, from);
}

/* Files hold a negative errno, 0 for none. */
static void read_error(char *to, size_t room, const char *dir)
{
	char text[32];

	if (read_file(text, sizeof(text), "%s/last_error", dir) && atoi(text))
		snprintf(to, room, "%s", strerror(-atoi(text)));
}

/* Ports are called DEVICE-NUMBER here. */
static bool is_port(const struct diag_port *port, const char *name)
{
	char own[80];

	snprintf(own, sizeof(own), "%s-%u", port->device, port->number);
	return !strcmp(own, name);
}

static int take_port(const struct place *place, const char *name)
{
	struct diag_links *links = place->links;

	for (size_t i = 0; i < links->nports; i++) {
		struct diag_port *port = &links->ports[i];

		if (!is_port(port, name))
			continue;
		copy(port->instance, sizeof(port->instance), place->instance);
		read_file(port->address, sizeof(port->address), "%s/address",
			  place->path);
		port->rdma_mtu = read_number("%s/mtu", place->path);
	}
	return 0;
}

static void read_path(struct diag_path *path, const char *dir)
{
	read_file(path->state, sizeof(path->state), "%s/state", dir);
	read_file(path->port, sizeof(path->port), "%s/device", dir);
	read_file(path->local, sizeof(path->local), "%s/src", dir);
	read_file(path->remote, sizeof(path->remote), "%s/dst", dir);
	read_error(path->last_error, sizeof(path->last_error), dir);
	path->tx_bytes = read_number("%s/bytes_sent", dir);
	path->rx_bytes = read_number("%s/bytes_received", dir);
	path->replayed = read_number("%s/replayed", dir);
	path->reconnects = read_number("%s/reconnects", dir);
}

static int take_path(const struct place *place, const char *name)
{
	struct diag_links *links = place->links;
	struct diag_path *more, *path;

	more = reallocarray(links->paths, links->npaths + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	links->paths = more;
	path = &more[links->npaths++];
	*path = (struct diag_path){};
	copy(path->instance, sizeof(path->instance), place->instance);
	copy(path->peer, sizeof(path->peer), place->peer);
	copy(path->name, sizeof(path->name), name);
	read_path(path, place->path);
	return 0;
}

static int take_session(const struct place *place, const char *name)
{
	struct place session = *place;

	session.peer = name;
	return for_each(&session, "paths", take_path);
}

static int take_instance(const struct place *place, const char *name)
{
	struct place instance = *place;
	int error;

	instance.instance = name;
	error = for_each(&instance, "ports", take_port);
	return error ? error : for_each(&instance, "sessions", take_session);
}

/* Peers that are instances of this kernel are known by name. */
static int name_peers(const struct place *place, const char *name)
{
	struct diag_links *links = place->links;
	char id[40];

	if (!read_file(id, sizeof(id), "%s/instance_id", place->path))
		return 0;
	for (size_t i = 0; i < links->npaths; i++)
		if (!strcmp(links->paths[i].peer, id))
			copy(links->paths[i].peer_instance,
			     sizeof(links->paths[i].peer_instance), name);
	return 0;
}

int diag_hcomm_get(struct diag_links *links)
{
	struct place root = { .links = links, .path = "/sys/class" };
	int error;

	links->module_loaded = !access("/sys/module/hcomm", F_OK);
	read_file(links->module, sizeof(links->module),
		  "/sys/module/hcomm/version");
	error = for_each(&root, "hcomm", take_instance);
	return error ? error : for_each(&root, "hcomm", name_peers);
}
