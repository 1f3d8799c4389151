// SPDX-License-Identifier: GPL-2.0
/*
 * The broker. A member offers files of its own descriptor table; who takes one
 * is a member of the same group and has therefore stated its secret. Files are
 * kept from the offer until the member ends.
 *
 * Only regular files of tmpfs and hugetlbfs are taken: they refer to no other
 * file, so that no cycle of references can be made by offering a device or a
 * socket.
 *
 * Locks: heaps_lock. It also orders an offer against the end of the member,
 * which changes the state first and forgets afterwards.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/magic.h>

#include "broker.h"
#include "limits.h"
#include "member.h"

static int hcomm_broker_check(struct file *file, u64 size)
{
	const fmode_t mode = FMODE_READ | FMODE_WRITE;
	struct inode *inode = file_inode(file);

	if (!S_ISREG(inode->i_mode) ||
	    (inode->i_sb->s_magic != TMPFS_MAGIC &&
	     inode->i_sb->s_magic != HUGETLBFS_MAGIC))
		return -EBADF;
	if ((file->f_mode & mode) != mode)
		return -EACCES;
	if (!size || i_size_read(inode) != size)
		return -EINVAL;
	return 0;
}

int hcomm_broker_offer(struct hcomm_member *member,
		       const struct hcomm_heap_offer *arg)
{
	struct file *file;
	int ret;

	if (arg->segment >= HCOMM_MAX_SEGMENTS)
		return -EINVAL;
	file = fget(arg->fd);
	if (!file)
		return -EBADF;
	ret = hcomm_broker_check(file, arg->size);
	if (ret)
		goto out;
	mutex_lock(&member->heaps_lock);
	hcomm_member_lock(member);
	ret = hcomm_member_error(member);
	hcomm_member_unlock(member);
	if (!ret)
		ret = xa_insert(&member->heaps, arg->segment, file,
				GFP_KERNEL_ACCOUNT);
	if (ret == -EBUSY)
		ret = -EEXIST;
	mutex_unlock(&member->heaps_lock);
out:
	if (ret)
		fput(file);
	return ret;
}

static struct file *hcomm_broker_find(struct hcomm_member *owner, u32 segment)
{
	struct file *file;

	mutex_lock(&owner->heaps_lock);
	file = xa_load(&owner->heaps, segment);
	if (file)
		get_file(file);
	mutex_unlock(&owner->heaps_lock);
	return file ? file : ERR_PTR(-EAGAIN);
}

struct file *hcomm_broker_take(struct hcomm_member *member,
			       struct hcomm_heap_take *arg)
{
	struct hcomm_member *owner;
	struct file *file;

	if (arg->rank >= member->group->size ||
	    arg->segment >= HCOMM_MAX_SEGMENTS || arg->reserved)
		return ERR_PTR(-EINVAL);
	owner = hcomm_group_member(member->group, arg->rank);
	if (!owner)
		return ERR_PTR(-ENOENT);
	file = hcomm_broker_find(owner, arg->segment);
	hcomm_member_put(owner);
	if (!IS_ERR(file))
		arg->size = i_size_read(file_inode(file));
	return file;
}

void hcomm_broker_forget(struct hcomm_member *member)
{
	struct file *file;
	unsigned long segment;

	mutex_lock(&member->heaps_lock);
	xa_for_each(&member->heaps, segment, file) {
		xa_erase(&member->heaps, segment);
		fput(file);
	}
	mutex_unlock(&member->heaps_lock);
}
