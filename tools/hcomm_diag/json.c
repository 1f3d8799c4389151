// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links for programs; described in hcomm_diag(1). null is what is not known.
 * Whoever changes the meaning of a key, or removes one, increases
 * SCHEMA_VERSION.
 */
#include <stdio.h>

#include <json-c/json.h>

#include "links.h"

#define SCHEMA_VERSION	1

static void put_text(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key,
			       *text ? json_object_new_string(text) : NULL);
}

static void put_number(struct json_object *to, const char *key, bool known,
		       uint64_t number)
{
	json_object_object_add(to, key,
			       known ? json_object_new_uint64(number) : NULL);
}

static void put_flag(struct json_object *to, const char *key, bool flag)
{
	json_object_object_add(to, key, json_object_new_boolean(flag));
}

static struct json_object *netdev_of(const struct diag_port *port)
{
	struct json_object *object;

	if (!port->netdev_index)
		return NULL;
	object = json_object_new_object();
	put_text(object, "name", port->netdev);
	put_flag(object, "up", port->netdev_up);
	put_flag(object, "carrier", port->netdev_carrier);
	put_number(object, "mtu", port->netdev_mtu, port->netdev_mtu);
	put_number(object, "rx_bytes", port->has_bytes, port->rx_bytes);
	put_number(object, "tx_bytes", port->has_bytes, port->tx_bytes);
	return object;
}

static struct json_object *port_of(const struct diag_port *port)
{
	struct json_object *object = json_object_new_object();

	put_text(object, "device", port->device);
	put_number(object, "port", true, port->number);
	put_text(object, "instance", port->instance);
	put_text(object, "protocol", port->protocol);
	put_flag(object, "software", port->software);
	put_text(object, "state", diag_state_name(port->state));
	put_text(object, "physical_state", diag_physical_name(port->physical));
	json_object_object_add(object, "netdev", netdev_of(port));
	json_object_object_add(object, "speed_Gbps",
			       port->speed_gbps > 0 ?
				       json_object_new_double(port->speed_gbps) :
				       NULL);
	put_number(object, "rdma_mtu", port->rdma_mtu, port->rdma_mtu);
	put_text(object, "gid_types", port->gid_types);
	put_number(object, "retransmissions", port->has_retransmissions,
		   port->retransmissions);
	put_text(object, "last_error", port->last_error);
	put_flag(object, "ok", !*port->trouble);
	put_text(object, "trouble", port->trouble);
	return object;
}

static struct json_object *path_of(const struct diag_path *path)
{
	struct json_object *object = json_object_new_object();

	put_text(object, "instance", path->instance);
	put_text(object, "peer", path->peer);
	put_text(object, "peer_instance", path->peer_instance);
	put_text(object, "path", path->name);
	put_text(object, "state", path->state);
	put_text(object, "port", path->port);
	put_text(object, "local_address", path->local);
	put_text(object, "remote_address", path->remote);
	put_number(object, "rx_bytes", true, path->rx_bytes);
	put_number(object, "tx_bytes", true, path->tx_bytes);
	put_number(object, "retransmissions", true, path->replayed);
	put_number(object, "reconnects", true, path->reconnects);
	put_text(object, "last_error", path->last_error);
	put_flag(object, "ok", !*path->trouble);
	put_text(object, "trouble", path->trouble);
	return object;
}

static struct json_object *document_of(const struct diag_links *links)
{
	struct json_object *root = json_object_new_object();
	struct json_object *ports = json_object_new_array();
	struct json_object *paths = json_object_new_array();

	json_object_object_add(root, "schema_version",
			       json_object_new_int(SCHEMA_VERSION));
	put_text(root, "tool", "hcomm_diag");
	put_flag(root, "module_loaded", links->module_loaded);
	put_text(root, "module", links->module);
	for (size_t i = 0; i < links->nports; i++)
		json_object_array_add(ports, port_of(&links->ports[i]));
	json_object_object_add(root, "ports", ports);
	for (size_t i = 0; i < links->npaths; i++)
		json_object_array_add(paths, path_of(&links->paths[i]));
	json_object_object_add(root, "paths", paths);
	put_number(root, "failed", true, diag_links_failed(links));
	return root;
}

bool diag_json_print(const struct diag_links *links)
{
	struct json_object *root = document_of(links);
	int flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text = json_object_to_json_string_ext(root, flags);

	if (text)
		puts(text);
	json_object_put(root);
	return text;
}
