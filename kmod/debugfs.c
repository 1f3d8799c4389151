// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: what exists on each instance, one line each, for observers and for
 * tests that prove nothing is left. Nothing depends on it and errors are
 * ignored.
 *
 * The files show groups and members under groups_lock, objects and their
 * windows through the list of all objects, so that a window on its way out is
 * seen when its member is gone. debugfs_remove() waits for readers.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "debugfs.h"
#include "instance.h"
#include "member.h"
#include "memory.h"
#include "op.h"
#include "proc.h"
#include "window.h"

static struct dentry *hcomm_debugfs_root;

static const char *hcomm_state_name(enum hcomm_state state)
{
	switch (state) {
	case HCOMM_STATE_ACTIVE:
		return "active";
	case HCOMM_STATE_ERROR:
		return "error";
	case HCOMM_STATE_LEFT:
		return "left";
	}
	return "?";
}

static const char *hcomm_window_state_name(enum hcomm_window_state state)
{
	switch (state) {
	case HCOMM_WINDOW_LIVE:
		return "live";
	case HCOMM_WINDOW_REVOKING:
		return "revoking";
	case HCOMM_WINDOW_QUIESCED:
		return "quiesced";
	}
	return "?";
}

static int groups_show(struct seq_file *m, void *unused)
{
	struct hcomm_instance *instance = m->private;
	struct hcomm_member *member;
	struct hcomm_group *group;
	unsigned long rank;
	unsigned int local;

	mutex_lock(&instance->groups_lock);
	list_for_each_entry(group, &instance->groups, node) {
		local = 0;
		rcu_read_lock();
		xa_for_each(&group->members, rank, member)
			local++;
		rcu_read_unlock();
		seq_printf(m, "group=%*phN size=%u local=%u%s\n",
			   HCOMM_ID_BYTES, group->id, group->size, local,
			   group->unauthenticated ? " unauthenticated" : "");
	}
	mutex_unlock(&instance->groups_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(groups);

static void hcomm_member_show(struct seq_file *m, struct hcomm_member *member)
{
	struct hcomm_op *op;
	unsigned int live = 0;

	spin_lock_bh(&member->lock);
	list_for_each_entry(op, &member->ops, member_node)
		live++;
	seq_printf(m, "group=%*phN rank=%u pid=%d index=%u state=%s sems=%u ops=%u submitted=%llu completed=%llu failed=%llu bytes_put=%llu windows=%d\n",
		   HCOMM_ID_BYTES, member->group->id, member->rank,
		   member->proc->pid, member->index,
		   hcomm_state_name(member->state), member->sems.count, live,
		   member->ops_submitted, member->ops_completed,
		   member->ops_failed, member->bytes_put,
		   atomic_read(&member->nr_windows));
	spin_unlock_bh(&member->lock);
}

static int members_show(struct seq_file *m, void *unused)
{
	struct hcomm_instance *instance = m->private;
	struct hcomm_member *member;
	struct hcomm_group *group;
	unsigned long rank;

	mutex_lock(&instance->groups_lock);
	list_for_each_entry(group, &instance->groups, node) {
		rcu_read_lock();
		xa_for_each(&group->members, rank, member)
			hcomm_member_show(m, member);
		rcu_read_unlock();
	}
	mutex_unlock(&instance->groups_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(members);

static void hcomm_mem_show_windows(struct hcomm_mem *mem, void *arg)
{
	struct hcomm_window *window;
	struct seq_file *m = arg;

	spin_lock_bh(&mem->lock);
	list_for_each_entry(window, &mem->windows, mem_node)
		seq_printf(m, "group=%*phN rank=%u window=%u generation=%u object=%u pid=%d length=%llu state=%s\n",
			   HCOMM_ID_BYTES, window->member->group->id,
			   window->member->rank, window->id,
			   window->generation, mem->handle, mem->proc->pid,
			   mem->length, hcomm_window_state_name(window->state));
	spin_unlock_bh(&mem->lock);
}

static int windows_show(struct seq_file *m, void *unused)
{
	hcomm_mem_for_each(m->private, hcomm_mem_show_windows, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(windows);

static void hcomm_mem_show(struct hcomm_mem *mem, void *arg)
{
	struct seq_file *m = arg;

	spin_lock_bh(&mem->lock);
	seq_printf(m, "pid=%d object=%u base=%#llx length=%llu pages=%lu windows=%u revoking=%u users=%u%s\n",
		   mem->proc->pid, mem->handle, mem->base, mem->length,
		   mem->nr_pages, mem->nr_windows, mem->revoking, mem->users,
		   mem->orphaned ? " orphaned" : "");
	spin_unlock_bh(&mem->lock);
}

static int objects_show(struct seq_file *m, void *unused)
{
	hcomm_mem_for_each(m->private, hcomm_mem_show, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

void hcomm_debugfs_init(void)
{
	hcomm_debugfs_root = debugfs_create_dir("hcomm", NULL);
}

void hcomm_debugfs_exit(void)
{
	debugfs_remove(hcomm_debugfs_root);
	hcomm_debugfs_root = NULL;
}

struct dentry *hcomm_debugfs_add(struct hcomm_instance *instance,
				 const char *name,
				 const struct file_operations *fops)
{
	return debugfs_create_file(name, 0400, instance->debugfs, instance,
				   fops);
}

void hcomm_debugfs_create(struct hcomm_instance *instance)
{
	instance->debugfs = debugfs_create_dir(dev_name(&instance->dev),
					       hcomm_debugfs_root);
	hcomm_debugfs_add(instance, "groups", &groups_fops);
	hcomm_debugfs_add(instance, "members", &members_fops);
	hcomm_debugfs_add(instance, "windows", &windows_fops);
	hcomm_debugfs_add(instance, "objects", &objects_fops);
}

void hcomm_debugfs_destroy(struct hcomm_instance *instance)
{
	debugfs_remove(instance->debugfs);
	instance->debugfs = NULL;
}
