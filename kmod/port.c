// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices and their ports: which there are, which instance owns them, how
 * they are addressed, and the protection domain of each (instance, device).
 *
 * Our ib_client is registered after rdma_cm's (we depend on that module) and
 * therefore removed before it: hcomm_rdev_remove() takes down every path over
 * the device, whose work destroys queue pairs and cm_ids, drops registrations,
 * and waits until the last user is gone. All that is local: draining a queue
 * pair is bounded, and no step waits for a peer.
 *
 * A port belongs to hcomm0 until root assigns it to another instance. Moving
 * it takes the paths over it down. The connecting side brings them back over
 * what is left, to the address of the peer that it knows.
 *
 * hcomm_ports_lock protects the list of devices, `gone` and `owner`. A port
 * that was chosen is referenced through its device's `users`, so that nothing
 * is pulled from under a connection that is being made.
 */
#include <linux/dma-map-ops.h>
#include <linux/if_vlan.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "fabric.h"
#include "limits.h"

DEFINE_MUTEX(hcomm_ports_lock);	/* devices, ownership */
LIST_HEAD(hcomm_rdevs);
static u64 hcomm_rdev_serial;

/* ------------------------------------------------------- the device */

static bool hcomm_rdev_usable(struct ib_device *ib)
{
	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS))
		return false;
	if (!rdma_dev_access_netns(ib, &init_net))
		return false;
	/* We never sync: what the device wrote must be what the CPU reads. */
	return ib_uses_virt_dma(ib) || dev_is_dma_coherent(ib->dma_device);
}

static u8 hcomm_rdev_mr_shift(struct ib_device *ib)
{
	u64 pages = min_t(u64, ib->attrs.max_fast_reg_page_list_len, 4096);
	u64 bytes = min_t(u64, pages << PAGE_SHIFT, ib->attrs.max_mr_size);

	return bytes ? ilog2(bytes) : 0;
}

/* Takes down every path over @port, or over all ports of @rdev if it is NULL. */
static void hcomm_rdev_down(struct hcomm_rdev *rdev, struct hcomm_port *port,
			    int error, bool only_if_moved)
{
	struct hcomm_session *session;
	struct hcomm_fabric *fabric;
	struct hcomm_conn *conn;
	unsigned int nr, kind;
	bool hit;

	for (nr = 0; (fabric = hcomm_fabric_of(nr)); nr++) {
		spin_lock_bh(&fabric->lock);
		list_for_each_entry(session, &fabric->sessions, node) {
			hit = false;
			rcu_read_lock();
			for (kind = 0; kind < 2; kind++) {
				conn = rcu_dereference(session->path.conn[kind]);
				if (conn && conn->port->rdev == rdev &&
				    (!port || conn->port == port) &&
				    (!only_if_moved || READ_ONCE(port->owner) != nr))
					hit = true;
			}
			rcu_read_unlock();
			if (hit)
				hcomm_path_error(&session->path, error);
			if (READ_ONCE(session->path.poke_rdev) == rdev) {
				WRITE_ONCE(session->path.poke_over, true);
				hcomm_path_kick(&session->path);
			}
		}
		spin_unlock_bh(&fabric->lock);
	}
}

/* --------------------------------------------------------- graves */

/*
 * Ending an id sends a message. While its link is down the message is lost, and
 * rxe answers a send that it cannot pass on by failing the queue pair for good:
 * that of the connection manager, without which the device never connects
 * again. So ids of a port that is down wait until it is up.
 */
struct hcomm_grave {
	struct list_head node;
	struct hcomm_port *port;	/* referenced */
	struct rdma_cm_id *id;
	bool rises;			/* could send at the last look, too */
};

static LIST_HEAD(hcomm_graves);
static DEFINE_MUTEX(hcomm_graves_lock);	/* the list */

static void hcomm_grave_empty(struct hcomm_grave *grave)
{
	list_del(&grave->node);
	rdma_destroy_id(grave->id);
	hcomm_port_put(grave->port);
	kfree(grave);
}

/*
 * Those that can send, at a second look: routes are there some time after the
 * port. The others are looked at again.
 */
static void hcomm_graves_run(struct work_struct *work)
{
	struct hcomm_grave *grave, *next;
	bool could;

	mutex_lock(&hcomm_graves_lock);
	list_for_each_entry_safe(grave, next, &hcomm_graves, node) {
		could = grave->rises;
		grave->rises = hcomm_port_sends(grave->port, grave->id);
		if (could && grave->rises)
			hcomm_grave_empty(grave);
	}
	if (!list_empty(&hcomm_graves))
		queue_delayed_work(hcomm_teardown_wq, to_delayed_work(work), HZ);
	mutex_unlock(&hcomm_graves_lock);
}

static DECLARE_DELAYED_WORK(hcomm_graves_work, hcomm_graves_run);

static void hcomm_graves_of_device(struct hcomm_rdev *rdev)
{
	struct hcomm_grave *grave, *next;

	mutex_lock(&hcomm_graves_lock);
	list_for_each_entry_safe(grave, next, &hcomm_graves, node)
		if (grave->port->rdev == rdev)
			hcomm_grave_empty(grave);
	mutex_unlock(&hcomm_graves_lock);
}

void hcomm_port_bury(struct hcomm_port *port, struct rdma_cm_id *id)
{
	struct hcomm_grave *grave;

	grave = kzalloc(sizeof(*grave), GFP_KERNEL);
	if (!grave) {
		rdma_destroy_id(id);
		return;
	}
	hcomm_rdev_get(port->rdev);
	grave->port = port;
	grave->id = id;
	mutex_lock(&hcomm_graves_lock);
	list_add_tail(&grave->node, &hcomm_graves);
	mutex_unlock(&hcomm_graves_lock);
	queue_delayed_work(hcomm_teardown_wq, &hcomm_graves_work, HZ);
}

/* A GID table changed: paths whose source address is gone go down. */
static void hcomm_port_gids_changed(struct hcomm_port *port)
{
	struct hcomm_session *session;
	struct hcomm_fabric *fabric;
	struct hcomm_conn *conn;
	u8 (*addrs)[16];
	unsigned int nr, n;

	addrs = kmalloc_array(64, sizeof(*addrs), GFP_KERNEL);
	if (!addrs) {
		hcomm_rdev_down(port->rdev, port, -EADDRNOTAVAIL, false);
		return;
	}
	for (nr = 0; (fabric = hcomm_fabric_of(nr)); nr++) {
		n = 0;
		spin_lock_bh(&fabric->lock);
		list_for_each_entry(session, &fabric->sessions, node) {
			rcu_read_lock();
			conn = rcu_dereference(session->path.conn[HCOMM_QP_SMALL]);
			if (conn && conn->port == port && n < 64)
				memcpy(addrs[n++], session->path.src, 16);
			rcu_read_unlock();
		}
		spin_unlock_bh(&fabric->lock);
		while (n) {
			if (hcomm_port_has_addr(port, addrs[--n]))
				continue;
			hcomm_rdev_down(port->rdev, port, -EADDRNOTAVAIL, false);
			break;
		}
	}
	kfree(addrs);
}

/* Paths that stood over @port last try it now. */
static void hcomm_port_rises(struct hcomm_port *port)
{
	struct hcomm_fabric *fabric = hcomm_fabric_of(READ_ONCE(port->owner));
	struct hcomm_session *session;

	if (!fabric)
		return;
	spin_lock_bh(&fabric->lock);
	list_for_each_entry(session, &fabric->sessions, node)
		hcomm_path_rises(&session->path, port);
	spin_unlock_bh(&fabric->lock);
}

bool hcomm_port_is_home(const struct hcomm_port *port,
			const struct hcomm_home *home)
{
	return port->rdev->serial == home->rdev && port->nr == home->port;
}

static void hcomm_rdev_event(struct ib_event_handler *handler,
			     struct ib_event *event)
{
	struct hcomm_rdev *rdev = container_of(handler, struct hcomm_rdev,
					       handler);
	u32 nr = event->element.port_num;

	switch (event->event) {
	case IB_EVENT_DEVICE_FATAL:
		hcomm_rdev_down(rdev, NULL, -EIO, false);
		break;
	case IB_EVENT_PORT_ERR:
		if (!nr || nr > rdev->nr_ports)
			break;
		hcomm_rdev_down(rdev, &rdev->ports[nr - 1], -ENETDOWN, false);
		break;
	case IB_EVENT_PORT_ACTIVE:
		if (nr && nr <= rdev->nr_ports)
			hcomm_port_rises(&rdev->ports[nr - 1]);
		break;
	case IB_EVENT_GID_CHANGE:
		if (nr && nr <= rdev->nr_ports)
			hcomm_port_gids_changed(&rdev->ports[nr - 1]);
		break;
	default:
		break;
	}
}

static void hcomm_port_show(struct hcomm_port *port)
{
	struct hcomm_fabric *fabric = hcomm_fabric_of(port->owner);

	if (fabric)
		hcomm_sysfs_port_add(fabric, port);
}

static struct ib_client hcomm_ib_client;

static int hcomm_rdev_add(struct ib_device *ib)
{
	unsigned int nr_ports = ib->phys_port_cnt;
	struct hcomm_rdev *rdev;
	unsigned int i;

	if (!hcomm_rdev_usable(ib) ||
	    hcomm_rdev_mr_shift(ib) < HCOMM_MR_SHIFT_LEAST)
		return -EOPNOTSUPP;
	rdev = kzalloc(struct_size(rdev, ports, nr_ports), GFP_KERNEL);
	if (!rdev)
		return -ENOMEM;
	rdev->pds = kcalloc(HCOMM_MAX_INSTANCES, sizeof(*rdev->pds), GFP_KERNEL);
	if (!rdev->pds) {
		kfree(rdev);
		return -ENOMEM;
	}
	rdev->ib = ib;
	refcount_set(&rdev->users, 1);
	init_completion(&rdev->idle);
	mutex_init(&rdev->lock);
	INIT_LIST_HEAD(&rdev->tables);
	rdev->mr_shift = min_t(u8, hcomm_rdev_mr_shift(ib),
			       HCOMM_WIRE_MR_SHIFT_MAX);
	rdev->nr_ports = nr_ports;
	for (i = 0; i < nr_ports; i++) {
		rdev->ports[i].rdev = rdev;
		rdev->ports[i].nr = i + 1;
	}
	ib_set_client_data(ib, &hcomm_ib_client, rdev);
	INIT_IB_EVENT_HANDLER(&rdev->handler, ib, hcomm_rdev_event);
	ib_register_event_handler(&rdev->handler);

	mutex_lock(&hcomm_ports_lock);
	rdev->serial = ++hcomm_rdev_serial;
	list_add_tail(&rdev->node, &hcomm_rdevs);
	for (i = 0; i < nr_ports; i++)
		hcomm_port_show(&rdev->ports[i]);
	mutex_unlock(&hcomm_ports_lock);
	return 0;
}

static void hcomm_rdev_remove(struct ib_device *ib, void *data)
{
	struct hcomm_rdev *rdev = data;
	unsigned int i;

	mutex_lock(&hcomm_ports_lock);
	rdev->gone = true;
	list_del(&rdev->node);
	for (i = 0; i < rdev->nr_ports; i++)
		hcomm_sysfs_port_del(&rdev->ports[i]);
	mutex_unlock(&hcomm_ports_lock);

	ib_unregister_event_handler(&rdev->handler);
	/* A connection that was being made meanwhile is not on its path yet. */
	hcomm_rdev_put(rdev);
	do {
		hcomm_rdev_down(rdev, NULL, -ENODEV, false);
		hcomm_graves_of_device(rdev);
	} while (!wait_for_completion_timeout(&rdev->idle, HZ / 10));

	hcomm_tables_drop(rdev);
	for (i = 0; i < HCOMM_MAX_INSTANCES; i++)
		if (rdev->pds[i])
			ib_dealloc_pd(rdev->pds[i]);
	mutex_destroy(&rdev->lock);
	kfree(rdev->pds);
	kfree(rdev);
}

static struct ib_client hcomm_ib_client = {
	.name = KBUILD_MODNAME,
	.add = hcomm_rdev_add,
	.remove = hcomm_rdev_remove,
};

void hcomm_rdev_get(struct hcomm_rdev *rdev)
{
	refcount_inc(&rdev->users);
}

void hcomm_rdev_put(struct hcomm_rdev *rdev)
{
	if (refcount_dec_and_test(&rdev->users))
		complete(&rdev->idle);
}

struct ib_pd *hcomm_rdev_pd(struct hcomm_rdev *rdev, unsigned int instance)
{
	struct ib_pd *pd;

	mutex_lock(&rdev->lock);
	pd = rdev->pds[instance];
	if (!pd) {
		pd = ib_alloc_pd(rdev->ib, 0);
		if (!IS_ERR(pd))
			rdev->pds[instance] = pd;
	}
	mutex_unlock(&rdev->lock);
	return pd;
}

/* --------------------------------------------------------- the port */

/* The address of an iWARP port is that of its net device. */
static int hcomm_port_netdev_addr(const struct ib_gid_attr *attr, u8 *addr)
{
	struct net_device *ndev;
	struct in_device *in_dev;
	struct in_ifaddr *ifa;
	int ret = -EADDRNOTAVAIL;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	in_dev = IS_ERR(ndev) ? NULL : __in_dev_get_rcu(ndev);
	ifa = in_dev ? rcu_dereference(in_dev->ifa_list) : NULL;
	if (ifa) {
		ipv6_addr_set_v4mapped(ifa->ifa_local, (struct in6_addr *)addr);
		ret = 0;
	}
	rcu_read_unlock();
	return ret;
}

/* Calls @fn for every GID of the port. Stops when it returns true. */
static bool hcomm_port_each_gid(const struct hcomm_port *port,
				bool (*fn)(const struct ib_gid_attr *attr,
					   void *arg),
				void *arg)
{
	struct ib_device *ib = port->rdev->ib;
	const struct ib_gid_attr *attr;
	bool stop = false;
	int i, table;

	table = rdma_is_port_valid(ib, port->nr) ?
		ib->port_data[port->nr].immutable.gid_tbl_len : 0;
	for (i = 0; i < table && !stop; i++) {
		attr = rdma_get_gid_attr(ib, port->nr, i);
		if (IS_ERR(attr))
			continue;
		stop = fn(attr, arg);
		rdma_put_gid_attr(attr);
	}
	return stop;
}

/*
 * The net device of a GID is up and has a carrier. That of a VLAN hears late of
 * its real device's.
 */
static bool hcomm_gid_carrier(const struct ib_gid_attr *attr, void *arg)
{
	struct net_device *ndev;
	bool carrier;

	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(attr);
	if (!IS_ERR(ndev) && is_vlan_dev(ndev))
		ndev = vlan_dev_real_dev(ndev);
	carrier = !IS_ERR(ndev) && netif_running(ndev) &&
		  netif_carrier_ok(ndev);
	rcu_read_unlock();
	return carrier;
}

/*
 * A port's state follows its net device by events, which may come a second
 * after the carrier has gone; the carrier tells at once.
 */
bool hcomm_port_active(const struct hcomm_port *port)
{
	struct ib_device *ib = port->rdev->ib;
	struct ib_port_attr attr;

	if (ib_query_port(ib, port->nr, &attr) || attr.state != IB_PORT_ACTIVE)
		return false;
	return rdma_protocol_ib(ib, port->nr) ||
	       hcomm_port_each_gid(port, hcomm_gid_carrier, NULL);
}

bool hcomm_port_sends(const struct hcomm_port *port,
		      const struct rdma_cm_id *id)
{
	const struct ib_gid_attr *attr = id->route.addr.dev_addr.sgid_attr;

	return hcomm_port_active(port) &&
	       (!attr || rdma_protocol_ib(port->rdev->ib, port->nr) ||
		hcomm_gid_carrier(attr, NULL));
}

struct hcomm_addr_visit {
	bool iwarp;
	bool (*fn)(const u8 *addr, void *arg);
	void *arg;
};

static bool hcomm_gid_addr(const struct ib_gid_attr *attr, void *arg)
{
	struct hcomm_addr_visit *visit = arg;
	struct in6_addr addr;

	memcpy(&addr, attr->gid.raw, sizeof(addr));
	if (visit->iwarp) {
		if (hcomm_port_netdev_addr(attr, addr.s6_addr))
			return false;
	} else if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP ||
		   ipv6_addr_type(&addr) & IPV6_ADDR_LINKLOCAL) {
		return false;
	}
	return visit->fn(addr.s6_addr, visit->arg);
}

/*
 * Calls @fn for every address a peer could connect to: RoCE v2 GIDs that are
 * no link-local ones. Stops when it returns true.
 */
static bool hcomm_port_each_addr(const struct hcomm_port *port,
				 bool (*fn)(const u8 *addr, void *arg),
				 void *arg)
{
	struct hcomm_addr_visit visit = {
		.iwarp = rdma_protocol_iwarp(port->rdev->ib, port->nr),
		.fn = fn,
		.arg = arg,
	};

	return hcomm_port_each_gid(port, hcomm_gid_addr, &visit);
}

static bool hcomm_addr_take(const u8 *addr, void *arg)
{
	memcpy(arg, addr, 16);
	return true;
}

int hcomm_port_addr(const struct hcomm_port *port, u8 *addr)
{
	return hcomm_port_each_addr(port, hcomm_addr_take, addr) ?
	       0 : -EADDRNOTAVAIL;
}

static bool hcomm_addr_equal(const u8 *addr, void *arg)
{
	return !memcmp(addr, arg, 16);
}

bool hcomm_port_has_addr(const struct hcomm_port *port, const u8 *addr)
{
	return hcomm_port_each_addr(port, hcomm_addr_equal, (void *)addr);
}

struct hcomm_addr_best {
	const u8 *peer;
	int bits;
	u8 addr[16];
};

static bool hcomm_addr_compare(const u8 *addr, void *arg)
{
	struct hcomm_addr_best *best = arg;
	int bits = ipv6_addr_diff((const struct in6_addr *)addr,
				  (const struct in6_addr *)best->peer);
	bool v4 = ipv6_addr_v4mapped((const struct in6_addr *)best->peer);

	/* An IPv4 peer is reached from an IPv4 address only, and vice versa. */
	if (v4 != ipv6_addr_v4mapped((const struct in6_addr *)addr))
		return false;
	if (bits > best->bits) {
		best->bits = bits;
		memcpy(best->addr, addr, 16);
	}
	return false;
}

static bool hcomm_port_owned(const struct hcomm_port *port,
			     const struct hcomm_fabric *fabric)
{
	return !port->rdev->gone && port->owner == fabric->nr;
}

/* How many of the others come before a port of @bits at @index. */
static unsigned int hcomm_port_rank(const int *bits, unsigned int count,
				    unsigned int index)
{
	unsigned int before = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (bits[i] > bits[index] ||
		    (bits[i] == bits[index] && i < index))
			before++;
	return before;
}

#define HCOMM_PORTS_TRIED	16

struct hcomm_port *hcomm_port_choose(struct hcomm_fabric *fabric,
				     const u8 *peer, unsigned int attempt,
				     u8 *addr)
{
	struct hcomm_port *ports[HCOMM_PORTS_TRIED], *port = NULL;
	u8 (*addrs)[16];
	int bits[HCOMM_PORTS_TRIED];
	struct hcomm_addr_best best;
	struct hcomm_rdev *rdev;
	unsigned int count = 0;
	unsigned int i;

	addrs = kmalloc_array(HCOMM_PORTS_TRIED, sizeof(*addrs), GFP_KERNEL);
	if (!addrs)
		return NULL;
	mutex_lock(&hcomm_ports_lock);
	list_for_each_entry(rdev, &hcomm_rdevs, node) {
		for (i = 0; i < rdev->nr_ports; i++) {
			if (count == HCOMM_PORTS_TRIED ||
			    !hcomm_port_owned(&rdev->ports[i], fabric) ||
			    !hcomm_port_active(&rdev->ports[i]))
				continue;
			best.peer = peer;
			best.bits = -1;
			hcomm_port_each_addr(&rdev->ports[i],
					     hcomm_addr_compare, &best);
			if (best.bits < 0)
				continue;
			ports[count] = &rdev->ports[i];
			memcpy(addrs[count], best.addr, 16);
			bits[count++] = best.bits;
		}
	}
	for (i = 0; i < count && !port; i++) {
		if (hcomm_port_rank(bits, count, i) != attempt % count)
			continue;
		port = ports[i];
		memcpy(addr, addrs[i], 16);
		hcomm_rdev_get(port->rdev);
	}
	mutex_unlock(&hcomm_ports_lock);
	kfree(addrs);
	return port;
}

struct hcomm_port *hcomm_port_of_id(struct hcomm_fabric *fabric,
				    struct rdma_cm_id *id)
{
	struct hcomm_port *port = NULL;
	struct hcomm_rdev *rdev;

	mutex_lock(&hcomm_ports_lock);
	list_for_each_entry(rdev, &hcomm_rdevs, node) {
		if (rdev->ib != id->device || !id->port_num ||
		    id->port_num > rdev->nr_ports)
			continue;
		if (hcomm_port_owned(&rdev->ports[id->port_num - 1], fabric)) {
			port = &rdev->ports[id->port_num - 1];
			hcomm_rdev_get(rdev);
		}
		break;
	}
	mutex_unlock(&hcomm_ports_lock);
	return port;
}

void hcomm_port_put(struct hcomm_port *port)
{
	hcomm_rdev_put(port->rdev);
}

bool hcomm_ports_hear(struct hcomm_fabric *fabric, const struct hcomm_home *home)
{
	bool known = false, hears = false;
	struct hcomm_rdev *rdev;
	struct hcomm_port *port;
	unsigned int i;

	mutex_lock(&hcomm_ports_lock);
	list_for_each_entry(rdev, &hcomm_rdevs, node) {
		for (i = 0; i < rdev->nr_ports && !known; i++) {
			port = &rdev->ports[i];
			if (!hcomm_port_owned(port, fabric))
				continue;
			known = hcomm_port_is_home(port, home);
			if (known || !hears)
				hears = hcomm_port_active(port);
		}
	}
	mutex_unlock(&hcomm_ports_lock);
	return hears;
}

/* ------------------------------------------------------- ownership */

static struct hcomm_port *hcomm_port_by_name(const char *name)
{
	struct hcomm_rdev *rdev;
	const char *slash = strchr(name, '/');
	unsigned int nr;
	size_t len;

	if (!slash || kstrtouint(slash + 1, 10, &nr))
		return NULL;
	len = slash - name;
	list_for_each_entry(rdev, &hcomm_rdevs, node)
		if (strlen(dev_name(&rdev->ib->dev)) == len &&
		    !strncmp(dev_name(&rdev->ib->dev), name, len))
			return nr && nr <= rdev->nr_ports ?
			       &rdev->ports[nr - 1] : NULL;
	return NULL;
}

int hcomm_port_assign(struct hcomm_fabric *fabric, const char *name, bool add)
{
	unsigned int self = fabric->nr;
	struct hcomm_port *port;
	int ret = 0;

	mutex_lock(&hcomm_ports_lock);
	port = hcomm_port_by_name(name);
	if (!port) {
		ret = -ENODEV;
	} else if (add ? port->owner == self : port->owner != self) {
		ret = add ? 0 : -ENOENT;
	} else if (!add && !self) {
		/* It is hcomm0's until another takes it. */
		ret = -EINVAL;
	} else {
		hcomm_sysfs_port_del(port);
		WRITE_ONCE(port->owner, add ? self : 0);
		hcomm_port_show(port);
		hcomm_rdev_down(port->rdev, port, -ENODEV, true);
	}
	mutex_unlock(&hcomm_ports_lock);
	return ret;
}

int hcomm_ports_init(void)
{
	return ib_register_client(&hcomm_ib_client);
}

void hcomm_ports_exit(void)
{
	ib_unregister_client(&hcomm_ib_client);
	cancel_delayed_work_sync(&hcomm_graves_work);
}
