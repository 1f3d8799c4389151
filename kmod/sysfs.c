// SPDX-License-Identifier: GPL-2.0
/*
 * What an administrator sees and sets below /sys/class/hcomm/hcommN: one value
 * per file, documented in Documentation/ABI/testing/sysfs-class-hcomm.
 *
 * Attributes of the instance itself are a group of its device. Ports and
 * sessions are directories (kobjects) below it, made when they appear and
 * deleted before what they show goes away: kobject_del() waits for readers, so
 * a show function may use the object it belongs to, but takes no lock under
 * which directories are deleted (hcomm_ports_lock). The directories "ports" and
 * "sessions" are there between hcomm_sysfs_create() and hcomm_sysfs_destroy(),
 * which the instance calls while its device is registered.
 */
#include <linux/device.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "fabric.h"
#include "session.h"
#include "sysfs.h"

/* ------------------------------------------------------- the instance */

static ssize_t instance_id_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%*phN\n", HCOMM_ID_BYTES,
			  hcomm_instance_of(dev)->id);
}
static DEVICE_ATTR_RO(instance_id);

static ssize_t listen_port_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n",
			  hcomm_instance_of(dev)->fabric->listen_port);
}
static DEVICE_ATTR_RO(listen_port);

static ssize_t hcomm_port_store(struct device *dev, const char *buf,
				size_t count, bool add)
{
	char *name;
	int ret;

	name = kstrndup(buf, count, GFP_KERNEL);
	if (!name)
		return -ENOMEM;
	ret = hcomm_port_assign(hcomm_instance_of(dev)->fabric, strim(name),
				add);
	kfree(name);
	return ret ?: count;
}

static ssize_t add_port_store(struct device *dev, struct device_attribute *attr,
			      const char *buf, size_t count)
{
	return hcomm_port_store(dev, buf, count, true);
}
static DEVICE_ATTR_WO(add_port);

static ssize_t remove_port_store(struct device *dev,
				 struct device_attribute *attr, const char *buf,
				 size_t count)
{
	return hcomm_port_store(dev, buf, count, false);
}
static DEVICE_ATTR_WO(remove_port);

static struct attribute *hcomm_instance_attrs[] = {
	&dev_attr_instance_id.attr,
	&dev_attr_listen_port.attr,
	&dev_attr_add_port.attr,
	&dev_attr_remove_port.attr,
	NULL
};

static const struct attribute_group hcomm_instance_group = {
	.attrs = hcomm_instance_attrs,
};

const struct attribute_group *hcomm_instance_groups[] = {
	&hcomm_instance_group,
	NULL
};

/* ------------------------------------------------- directories of ours */

struct hcomm_dir {
	struct kobject kobj;
	void *object;			/* what it shows */
};

struct hcomm_file {
	struct attribute attr;
	ssize_t (*show)(void *object, char *buf);
	ssize_t (*store)(void *object);
};

#define HCOMM_FILE_RO(_prefix, _name)				\
	static struct hcomm_file _prefix##_file_##_name = {	\
		.attr = { .name = #_name, .mode = 0444 },	\
		.show = _prefix##_##_name##_show,		\
	}

#define HCOMM_FILE_WO(_prefix, _name)				\
	static struct hcomm_file _prefix##_file_##_name = {	\
		.attr = { .name = #_name, .mode = 0200 },	\
		.store = _prefix##_##_name##_store,		\
	}

static ssize_t hcomm_dir_show(struct kobject *kobj, struct attribute *attr,
			      char *buf)
{
	struct hcomm_file *file = container_of(attr, struct hcomm_file, attr);
	struct hcomm_dir *dir = container_of(kobj, struct hcomm_dir, kobj);

	return file->show ? file->show(dir->object, buf) : -EIO;
}

/* Any write does what the file is for; the first character must be 1. */
static ssize_t hcomm_dir_store(struct kobject *kobj, struct attribute *attr,
			       const char *buf, size_t count)
{
	struct hcomm_file *file = container_of(attr, struct hcomm_file, attr);
	struct hcomm_dir *dir = container_of(kobj, struct hcomm_dir, kobj);
	ssize_t ret;

	if (!file->store)
		return -EIO;
	if (!sysfs_streq(buf, "1"))
		return -EINVAL;
	ret = file->store(dir->object);
	return ret ?: count;
}

static const struct sysfs_ops hcomm_dir_ops = {
	.show = hcomm_dir_show,
	.store = hcomm_dir_store,
};

static void hcomm_dir_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct hcomm_dir, kobj));
}

/* Observing must not fail what is observed: NULL when it cannot be made. */
static struct kobject *hcomm_dir_make(struct kobject *parent,
				      const struct kobj_type *type,
				      void *object, const char *name)
{
	struct hcomm_dir *dir;

	if (!parent)
		return NULL;
	dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	if (!dir)
		return NULL;
	dir->object = object;
	if (kobject_init_and_add(&dir->kobj, type, parent,
				 "%s", name)) {
		kobject_put(&dir->kobj);
		return NULL;
	}
	return &dir->kobj;
}

static void hcomm_dir_drop(struct kobject **dir)
{
	if (*dir) {
		kobject_del(*dir);
		kobject_put(*dir);
	}
	*dir = NULL;
}

static const struct kobj_type hcomm_plain_type = {
	.release = hcomm_dir_release,
	.sysfs_ops = &hcomm_dir_ops,
};

static ssize_t hcomm_addr_emit(char *buf, const u8 *addr)
{
	const struct in6_addr *in6 = (const struct in6_addr *)addr;

	if (ipv6_addr_v4mapped(in6))
		return sysfs_emit(buf, "%pI4\n", &in6->s6_addr32[3]);
	return sysfs_emit(buf, "%pI6c\n", in6);
}

/* ------------------------------------------------------------ ports */

static ssize_t port_state_show(void *object, char *buf)
{
	return sysfs_emit(buf, "%s\n",
			  hcomm_port_active(object) ? "active" : "down");
}

HCOMM_FILE_RO(port, state);

static ssize_t port_address_show(void *object, char *buf)
{
	u8 addr[16];

	if (hcomm_port_addr(object, addr))
		return sysfs_emit(buf, "\n");
	return hcomm_addr_emit(buf, addr);
}

HCOMM_FILE_RO(port, address);

static ssize_t port_netdev_show(void *object, char *buf)
{
	struct hcomm_port *port = object;
	const struct ib_gid_attr *attr;
	struct net_device *ndev;
	ssize_t ret = sysfs_emit(buf, "\n");

	attr = rdma_get_gid_attr(port->rdev->ib, port->nr, 0);
	if (IS_ERR(attr))
		return ret;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev))
		ret = sysfs_emit(buf, "%s\n", ndev->name);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return ret;
}

HCOMM_FILE_RO(port, netdev);

static ssize_t port_mtu_show(void *object, char *buf)
{
	struct hcomm_port *port = object;
	struct ib_port_attr attr;

	if (ib_query_port(port->rdev->ib, port->nr, &attr))
		return sysfs_emit(buf, "0\n");
	return sysfs_emit(buf, "%d\n", ib_mtu_enum_to_int(attr.active_mtu));
}

HCOMM_FILE_RO(port, mtu);

static ssize_t port_gid_type_show(void *object, char *buf)
{
	struct hcomm_port *port = object;

	if (rdma_protocol_iwarp(port->rdev->ib, port->nr))
		return sysfs_emit(buf, "iwarp\n");
	if (rdma_protocol_roce(port->rdev->ib, port->nr))
		return sysfs_emit(buf, "rocev2\n");
	return sysfs_emit(buf, "ib\n");
}

HCOMM_FILE_RO(port, gid_type);

static struct attribute *port_attrs[] = {
	&port_file_state.attr,
	&port_file_address.attr,
	&port_file_netdev.attr,
	&port_file_mtu.attr,
	&port_file_gid_type.attr,
	NULL
};
ATTRIBUTE_GROUPS(port);

static const struct kobj_type hcomm_port_type = {
	.release = hcomm_dir_release,
	.sysfs_ops = &hcomm_dir_ops,
	.default_groups = port_groups,
};

void hcomm_sysfs_port_add(struct hcomm_fabric *fabric, struct hcomm_port *port)
{
	char name[IB_DEVICE_NAME_MAX + 16];

	lockdep_assert_held(&hcomm_ports_lock);
	if (port->dir)
		return;
	snprintf(name, sizeof(name), "%s-%u", dev_name(&port->rdev->ib->dev),
		 port->nr);
	port->dir = hcomm_dir_make(fabric->ports_dir, &hcomm_port_type, port,
				   name);
}

void hcomm_sysfs_port_del(struct hcomm_port *port)
{
	lockdep_assert_held(&hcomm_ports_lock);
	hcomm_dir_drop(&port->dir);
}

/* ---------------------------------------------------------- sessions */

static DEFINE_MUTEX(hcomm_sessions_dir_lock);	/* one of a name at a time */

static ssize_t session_state_show(void *object, char *buf)
{
	static const char * const names[] = {
		[HCOMM_SESSION_NEW] = "connecting",
		[HCOMM_SESSION_OPEN] = "open",
		[HCOMM_SESSION_DEAD] = "ending",
	};
	struct hcomm_session *session = object;

	return sysfs_emit(buf, "%s\n", names[READ_ONCE(session->state)]);
}

HCOMM_FILE_RO(session, state);

static ssize_t session_peer_show(void *object, char *buf)
{
	struct hcomm_session *session = object;

	return sysfs_emit(buf, "%*phN\n", HCOMM_ID_BYTES, session->peer);
}

HCOMM_FILE_RO(session, peer);

static struct attribute *session_attrs[] = {
	&session_file_state.attr,
	&session_file_peer.attr,
	NULL
};
ATTRIBUTE_GROUPS(session);

static const struct kobj_type hcomm_session_type = {
	.release = hcomm_dir_release,
	.sysfs_ops = &hcomm_dir_ops,
	.default_groups = session_groups,
};

static ssize_t path_state_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%s\n",
			  hcomm_path_state_name(READ_ONCE(path->state)));
}

HCOMM_FILE_RO(path, state);

static ssize_t hcomm_path_addr_show(struct hcomm_path *path, const u8 *from,
				    char *buf)
{
	u8 addr[16];

	spin_lock_bh(&path->session->lock);
	memcpy(addr, from, sizeof(addr));
	spin_unlock_bh(&path->session->lock);
	return hcomm_addr_emit(buf, addr);
}

static ssize_t path_src_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return hcomm_path_addr_show(path, path->src, buf);
}

HCOMM_FILE_RO(path, src);

static ssize_t path_dst_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return hcomm_path_addr_show(path, path->dst, buf);
}

HCOMM_FILE_RO(path, dst);

static ssize_t path_device_show(void *object, char *buf)
{
	struct hcomm_conn *conn = hcomm_conn_get(object, HCOMM_QP_SMALL);
	ssize_t ret;

	if (!conn)
		return sysfs_emit(buf, "\n");
	ret = sysfs_emit(buf, "%s/%u\n", dev_name(&conn->port->rdev->ib->dev),
			 conn->port->nr);
	hcomm_conn_put(conn);
	return ret;
}

HCOMM_FILE_RO(path, device);

static ssize_t path_bytes_sent_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%lld\n", atomic64_read(&path->bytes_sent));
}

HCOMM_FILE_RO(path, bytes_sent);

static ssize_t path_bytes_received_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%lld\n", atomic64_read(&path->bytes_received));
}

HCOMM_FILE_RO(path, bytes_received);

static ssize_t path_in_flight_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%llu\n", READ_ONCE(path->sched.posted));
}

HCOMM_FILE_RO(path, in_flight);

static ssize_t path_rate_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%llu\n", READ_ONCE(path->sched.rate));
}

HCOMM_FILE_RO(path, rate);

static ssize_t path_replayed_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%lld\n", atomic64_read(&path->replayed));
}

HCOMM_FILE_RO(path, replayed);

static ssize_t path_reconnects_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%u\n", READ_ONCE(path->reconnects));
}

HCOMM_FILE_RO(path, reconnects);

static ssize_t path_last_error_show(void *object, char *buf)
{
	struct hcomm_path *path = object;

	return sysfs_emit(buf, "%d\n", READ_ONCE(path->error));
}

HCOMM_FILE_RO(path, last_error);

/* The path comes back by itself: what an operator or a test does to prove it. */
static ssize_t path_disconnect_store(void *object)
{
	hcomm_path_error(object, -ENOTCONN);
	return 0;
}

HCOMM_FILE_WO(path, disconnect);

static ssize_t path_reconnect_store(void *object)
{
	struct hcomm_path *path = object;

	spin_lock_bh(&path->session->lock);
	hcomm_path_retry(path);
	spin_unlock_bh(&path->session->lock);
	return 0;
}

HCOMM_FILE_WO(path, reconnect);

static struct attribute *path_attrs[] = {
	&path_file_state.attr,
	&path_file_src.attr,
	&path_file_dst.attr,
	&path_file_device.attr,
	&path_file_bytes_sent.attr,
	&path_file_bytes_received.attr,
	&path_file_in_flight.attr,
	&path_file_rate.attr,
	&path_file_replayed.attr,
	&path_file_reconnects.attr,
	&path_file_last_error.attr,
	&path_file_disconnect.attr,
	&path_file_reconnect.attr,
	NULL
};
ATTRIBUTE_GROUPS(path);

static const struct kobj_type hcomm_path_type = {
	.release = hcomm_dir_release,
	.sysfs_ops = &hcomm_dir_ops,
	.default_groups = path_groups,
};

/* From the session's tick, which has ended before it is deleted. */
void hcomm_sysfs_session_add(struct hcomm_session *session)
{
	struct kobject *parent = session->fabric->sessions_dir;
	char name[2 * HCOMM_ID_BYTES + 1];
	struct kernfs_node *old;

	if (session->dir || !parent)
		return;
	snprintf(name, sizeof(name), "%*phN", HCOMM_ID_BYTES, session->peer);
	/* An earlier session to that peer may be ending: at the next tick. */
	mutex_lock(&hcomm_sessions_dir_lock);
	old = kernfs_find_and_get(parent->sd, name);
	if (old) {
		kernfs_put(old);
		mutex_unlock(&hcomm_sessions_dir_lock);
		return;
	}
	session->dir = hcomm_dir_make(parent, &hcomm_session_type, session,
				      name);
	session->paths_dir = hcomm_dir_make(session->dir, &hcomm_plain_type,
					    NULL, "paths");
	session->path_dir = hcomm_dir_make(session->paths_dir,
					   &hcomm_path_type, &session->path,
					   "0");
	mutex_unlock(&hcomm_sessions_dir_lock);
}

void hcomm_sysfs_session_del(struct hcomm_session *session)
{
	hcomm_dir_drop(&session->path_dir);
	hcomm_dir_drop(&session->paths_dir);
	hcomm_dir_drop(&session->dir);
}

/* --------------------------------------------------- begin and end */

void hcomm_sysfs_create(struct hcomm_instance *instance)
{
	struct hcomm_fabric *fabric = instance->fabric;
	struct kobject *parent = &instance->dev.kobj;
	struct hcomm_rdev *rdev;
	unsigned int i;

	mutex_lock(&hcomm_ports_lock);
	fabric->ports_dir = hcomm_dir_make(parent, &hcomm_plain_type, NULL,
					   "ports");
	fabric->sessions_dir = hcomm_dir_make(parent, &hcomm_plain_type, NULL,
					      "sessions");
	list_for_each_entry(rdev, &hcomm_rdevs, node)
		for (i = 0; i < rdev->nr_ports; i++)
			if (rdev->ports[i].owner == fabric->nr)
				hcomm_sysfs_port_add(fabric, &rdev->ports[i]);
	mutex_unlock(&hcomm_ports_lock);
	hcomm_flows_file(instance);
}

/* No session is left. */
void hcomm_sysfs_destroy(struct hcomm_instance *instance)
{
	struct hcomm_fabric *fabric = instance->fabric;
	struct hcomm_rdev *rdev;
	unsigned int i;

	mutex_lock(&hcomm_ports_lock);
	list_for_each_entry(rdev, &hcomm_rdevs, node)
		for (i = 0; i < rdev->nr_ports; i++)
			if (rdev->ports[i].owner == fabric->nr)
				hcomm_sysfs_port_del(&rdev->ports[i]);
	hcomm_dir_drop(&fabric->ports_dir);
	hcomm_dir_drop(&fabric->sessions_dir);
	mutex_unlock(&hcomm_ports_lock);
}
