// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: hcommN/flows, a line for each stream of the instance: the peer, the
 * group, the ranks and where both directions stand. For observers and for tests
 * that prove nothing is left; no promise about the columns.
 *
 * A session is referenced while its streams are told, under its links_lock; the
 * next one is found from the list's order at that moment, so a list that
 * changes meanwhile may repeat or omit some, never follow a freed one.
 */
#include <linux/seq_file.h>

#include "debugfs.h"
#include "fabric.h"

static struct hcomm_session *hcomm_session_nth(struct hcomm_fabric *fabric,
					       unsigned int n)
{
	struct hcomm_session *session, *found = NULL;

	spin_lock_bh(&fabric->lock);
	list_for_each_entry(session, &fabric->sessions, node) {
		if (n--)
			continue;
		hcomm_session_get(session);
		found = session;
		break;
	}
	spin_unlock_bh(&fabric->lock);
	return found;
}

static void hcomm_stream_show(struct seq_file *s, struct hcomm_stream *stream)
{
	const struct hcomm_link *link = stream->link;
	const struct hcomm_flow *flow = &stream->flow;

	spin_lock_bh(&stream->lock);
	seq_printf(s, "%*phN %*phN %u %u %s %llu %llu %llu %llu %llu %d\n",
		   8, link->session->peer, 8, link->group->id, flow->src,
		   flow->dst, stream->open ? "open" : "closed", flow->tx.next,
		   flow->tx.una, flow->rx.next, flow->tx.get_next,
		   flow->tx.get_floor, atomic_read(&stream->posted));
	spin_unlock_bh(&stream->lock);
}

static int hcomm_flows_show(struct seq_file *s, void *unused)
{
	struct hcomm_instance *instance = s->private;
	struct hcomm_session *session;
	struct hcomm_stream *stream;
	struct hcomm_link *link;
	unsigned long index;
	unsigned int n;

	seq_puts(s, "# peer group local remote state tx_next tx_acked rx_next gets gets_done posted\n");
	for (n = 0; (session = hcomm_session_nth(instance->fabric, n)); n++) {
		mutex_lock(&session->links_lock);
		list_for_each_entry(link, &session->links, session_node)
			xa_for_each(&link->streams, index, stream)
				hcomm_stream_show(s, stream);
		mutex_unlock(&session->links_lock);
		hcomm_session_put(session);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(hcomm_flows);

void hcomm_flows_file(struct hcomm_instance *instance)
{
	hcomm_debugfs_add(instance, "flows", &hcomm_flows_fops);
}
