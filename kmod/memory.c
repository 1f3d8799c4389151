// SPDX-License-Identifier: GPL-2.0
/*
 * Memory objects: pinning a range of the caller's memory, the handle, moving
 * bytes through the pinned pages.
 *
 * An object is pinned and complete before it gets a handle. Its references:
 * the handle, each window, each op that reads or writes it, the transport
 * while a message is being copied. The last one queues free_work, which drops
 * the registrations, then the pins, then the charge, in this order: a page is
 * nobody's before it may be pinned again on the same account.
 *
 * When the process has ended, the charge of what is still reachable moves from
 * its address space to its user, see charge.h.
 *
 * Locks: the xa_lock of proc->objects protects handle against use: who finds
 * an object there may count itself as a user before MEM_DESTROY can look.
 * mem->lock nests inside. hcomm_mems_lock protects the list for observers.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "charge.h"
#include "core/shim.h"
#include "limits.h"
#include "memory.h"
#include "proc.h"
#include "session.h"
#include "work.h"

#define HCOMM_PIN_BATCH		max_t(unsigned long, SZ_2M / PAGE_SIZE, 1)

static DEFINE_MUTEX(hcomm_mems_lock);
static LIST_HEAD(hcomm_mems);

/*
 * A page of a file that is written back must not be written behind the file
 * system's back. What has no file system to ask: anonymous memory, tmpfs (and
 * so memfd and shared anonymous memory), hugetlbfs. Device nodes, too, lie on a
 * tmpfs; what a driver maps, ours included, is not memory of the process.
 */
static bool hcomm_inode_pinnable(const struct inode *inode)
{
	unsigned long magic = inode->i_sb->s_magic;

	return S_ISREG(inode->i_mode) &&
	       (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC);
}

static int hcomm_mem_check_vmas(unsigned long start, unsigned long end)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int ret = 0;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	while (start < end) {
		vma = find_vma(mm, start);
		if (!vma || vma->vm_start > start) {
			ret = -EFAULT;
			break;
		}
		/* A private mapping is copied before it is written. */
		if (vma->vm_file && vma->vm_flags & VM_SHARED &&
		    !hcomm_inode_pinnable(file_inode(vma->vm_file))) {
			ret = -EOPNOTSUPP;
			break;
		}
		start = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return ret;
}

/*
 * The mapping may have been replaced since it was checked; the page tells the
 * truth. The inode is freed by RCU; a page without mapping was truncated.
 */
static bool hcomm_page_pinnable(struct page *page)
{
	struct folio *folio = page_folio(page);
	struct address_space *mapping;
	bool ok = true;

	if (folio_test_anon(folio))
		return true;
	rcu_read_lock();
	mapping = READ_ONCE(folio->mapping);
	if (mapping && !((unsigned long)mapping & PAGE_MAPPING_FLAGS))
		ok = mapping->host && hcomm_inode_pinnable(mapping->host);
	rcu_read_unlock();
	return ok;
}

static void hcomm_mem_unpin(struct hcomm_mem *mem)
{
	unsigned long done = 0, nr;

	while (done < mem->nr_pinned) {
		nr = min(mem->nr_pinned - done, HCOMM_PIN_BATCH);
		unpin_user_pages_dirty_lock(mem->pages + done, nr, true);
		done += nr;
		cond_resched();
	}
	mem->nr_pinned = 0;
}

static int hcomm_mem_pin(struct hcomm_mem *mem)
{
	unsigned long addr = mem->base - mem->base_off;
	struct page **pages;
	unsigned long nr;
	int i, got;

	while (mem->nr_pinned < mem->nr_pages) {
		if (fatal_signal_pending(current))
			return -EINTR;
		nr = min(mem->nr_pages - mem->nr_pinned, HCOMM_PIN_BATCH);
		pages = mem->pages + mem->nr_pinned;
		got = pin_user_pages_fast(addr + mem->nr_pinned * PAGE_SIZE,
					  nr, FOLL_WRITE | FOLL_LONGTERM,
					  pages);
		if (got <= 0)
			return got ?: -EFAULT;
		mem->nr_pinned += got;
		for (i = 0; i < got; i++)
			if (!hcomm_page_pinnable(pages[i]))
				return -EOPNOTSUPP;
		cond_resched();
	}
	return 0;
}

static void hcomm_mem_free(struct hcomm_mem *mem)
{
	struct hcomm_proc *proc = mem->proc;

	hcomm_mem_unpin(mem);
	if (mem->orphaned)
		hcomm_uncharge_orphaned(proc, mem->nr_pages);
	else
		hcomm_uncharge_pages(proc, mem->nr_pages);
	kvfree(mem->pages);
	kfree(mem);
	hcomm_proc_put(proc);
}

static void hcomm_mem_free_work(struct work_struct *work)
{
	struct hcomm_mem *mem = container_of(work, struct hcomm_mem, free_work);

	hcomm_session_mem_release(mem);
	mutex_lock(&hcomm_mems_lock);
	list_del(&mem->node);
	mutex_unlock(&hcomm_mems_lock);
	hcomm_mem_free(mem);
}

static void hcomm_mem_last_put(struct kref *ref)
{
	struct hcomm_mem *mem = container_of(ref, struct hcomm_mem, ref);

	queue_work(hcomm_teardown_wq, &mem->free_work);
}

void hcomm_mem_get(struct hcomm_mem *mem)
{
	kref_get(&mem->ref);
}

void hcomm_mem_put(struct hcomm_mem *mem)
{
	kref_put(&mem->ref, hcomm_mem_last_put);
}

static struct hcomm_mem *hcomm_mem_alloc(struct hcomm_proc *proc,
					 const struct hcomm_mem_create *arg,
					 unsigned long nr_pages)
{
	struct hcomm_mem *mem;

	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem)
		return NULL;
	/* As large as the caller may ask: a refusal is no reason to warn. */
	mem->pages = kvmalloc_array(nr_pages, sizeof(*mem->pages),
				    GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!mem->pages) {
		kfree(mem);
		return NULL;
	}
	kref_init(&mem->ref);
	hcomm_proc_get(proc);
	mem->proc = proc;
	mem->base = arg->base;
	mem->length = arg->length;
	mem->base_off = offset_in_page(arg->base);
	mem->nr_pages = nr_pages;
	spin_lock_init(&mem->lock);
	INIT_LIST_HEAD(&mem->windows);
	mutex_init(&mem->mr_lock);
	INIT_LIST_HEAD(&mem->mr_tables);
	INIT_WORK(&mem->free_work, hcomm_mem_free_work);
	return mem;
}

/* The object becomes visible, with nothing left that could fail. */
static int hcomm_mem_publish(struct hcomm_mem *mem)
{
	struct hcomm_proc *proc = mem->proc;
	int ret = -ESHUTDOWN;

	mutex_lock(&hcomm_mems_lock);
	list_add_tail(&mem->node, &hcomm_mems);
	mutex_unlock(&hcomm_mems_lock);

	mutex_lock(&proc->lock);
	if (!proc->dead)
		ret = xa_alloc(&proc->objects, &mem->handle, mem,
			       XA_LIMIT(1, HCOMM_MAX_OBJECTS),
			       GFP_KERNEL_ACCOUNT);
	mutex_unlock(&proc->lock);
	if (!ret)
		return 0;

	mutex_lock(&hcomm_mems_lock);
	list_del(&mem->node);
	mutex_unlock(&hcomm_mems_lock);
	return ret == -EBUSY ? -ENOSPC : ret;
}

int hcomm_mem_create(struct hcomm_proc *proc, struct hcomm_mem_create *arg)
{
	unsigned long nr_pages;
	struct hcomm_mem *mem;
	u64 end;
	int ret;

	if (arg->kind != HCOMM_MEM_KIND_HOST || arg->flags || arg->reserved ||
	    !arg->length)
		return -EINVAL;
	if (check_add_overflow(arg->base, arg->length, &end) ||
	    end > TASK_SIZE)
		return -EFAULT;
	nr_pages = (PAGE_ALIGN(end) - (arg->base & PAGE_MASK)) >> PAGE_SHIFT;

	ret = hcomm_mem_check_vmas(arg->base, end);
	if (ret)
		return ret;
	ret = hcomm_charge_pages(proc, nr_pages, &arg->memlock_limit,
				 &arg->memlock_used);
	if (ret)
		return ret;
	mem = hcomm_mem_alloc(proc, arg, nr_pages);
	if (!mem) {
		hcomm_uncharge_pages(proc, nr_pages);
		return -ENOMEM;
	}
	ret = hcomm_mem_pin(mem);
	if (ret)
		goto err_free;
	/* Once it is published another thread may destroy it. */
	hcomm_mem_get(mem);
	ret = hcomm_mem_publish(mem);
	if (ret)
		goto err_free;
	arg->object = mem->handle;
	hcomm_mem_put(mem);
	return 0;

err_free:
	hcomm_mem_free(mem);
	return ret;
}

int hcomm_mem_destroy(struct hcomm_proc *proc, u32 handle)
{
	struct hcomm_mem *mem;
	bool busy;

	xa_lock(&proc->objects);
	mem = xa_load(&proc->objects, handle);
	if (!mem) {
		xa_unlock(&proc->objects);
		return -ENOENT;
	}
	spin_lock_bh(&mem->lock);
	busy = mem->nr_windows || mem->users;
	spin_unlock_bh(&mem->lock);
	if (!busy)
		__xa_erase(&proc->objects, handle);
	xa_unlock(&proc->objects);

	if (busy)
		return -EBUSY;
	hcomm_mem_put(mem);
	return 0;
}

/* Any object, with the reference of its handle: MEM_DESTROY may run as well. */
static struct hcomm_mem *hcomm_mem_take_any(struct hcomm_proc *proc)
{
	unsigned long handle = 0;
	struct hcomm_mem *mem;

	xa_lock(&proc->objects);
	mem = xa_find(&proc->objects, &handle, ULONG_MAX, XA_PRESENT);
	if (mem)
		__xa_erase(&proc->objects, handle);
	xa_unlock(&proc->objects);
	return mem;
}

void hcomm_mem_destroy_all(struct hcomm_proc *proc)
{
	struct hcomm_mem *mem;

	while ((mem = hcomm_mem_take_any(proc))) {
		hcomm_charge_orphaned(proc, mem->nr_pages);
		spin_lock_bh(&mem->lock);
		mem->orphaned = true;
		spin_unlock_bh(&mem->lock);
		hcomm_mem_put(mem);
	}
}

struct hcomm_mem *hcomm_mem_find(struct hcomm_proc *proc, u32 handle)
{
	struct hcomm_mem *mem;

	xa_lock(&proc->objects);
	mem = xa_load(&proc->objects, handle);
	if (mem)
		hcomm_mem_get(mem);
	xa_unlock(&proc->objects);
	return mem ?: ERR_PTR(-ENOENT);
}

struct hcomm_mem *hcomm_mem_use(struct hcomm_proc *proc, u32 handle)
{
	struct hcomm_mem *mem;

	xa_lock(&proc->objects);
	mem = xa_load(&proc->objects, handle);
	if (mem) {
		hcomm_mem_get(mem);
		spin_lock_bh(&mem->lock);
		mem->users++;
		spin_unlock_bh(&mem->lock);
	}
	xa_unlock(&proc->objects);
	return mem ?: ERR_PTR(-ENOENT);
}

void hcomm_mem_unuse(struct hcomm_mem *mem)
{
	spin_lock_bh(&mem->lock);
	mem->users--;
	spin_unlock_bh(&mem->lock);
	hcomm_mem_put(mem);
}

bool hcomm_mem_inside(const struct hcomm_mem *mem, u64 off, u64 len)
{
	return hcomm_in_range(off, len, mem->length);
}

/* Maps the page that holds byte @off; *@room is what follows in that page. */
static void *hcomm_mem_map(const struct hcomm_mem *mem, u64 off, size_t *room)
{
	u64 at = mem->base_off + off;
	size_t in_page = offset_in_page(at);

	*room = PAGE_SIZE - in_page;
	return kmap_local_page(mem->pages[at >> PAGE_SHIFT]) + in_page;
}

void hcomm_mem_write(struct hcomm_mem *mem, u64 off, const void *src,
		     size_t len)
{
	size_t room, n;
	void *to;

	while (len) {
		to = hcomm_mem_map(mem, off, &room);
		n = min(len, room);
		memcpy(to, src, n);
		kunmap_local(to);
		off += n;
		src += n;
		len -= n;
	}
}

void hcomm_mem_read(struct hcomm_mem *mem, u64 off, void *dst, size_t len)
{
	size_t room, n;
	void *from;

	while (len) {
		from = hcomm_mem_map(mem, off, &room);
		n = min(len, room);
		memcpy(dst, from, n);
		kunmap_local(from);
		off += n;
		dst += n;
		len -= n;
	}
}

static void hcomm_mem_copy_forward(struct hcomm_mem *dst, u64 dst_off,
				   struct hcomm_mem *src, u64 src_off,
				   size_t len)
{
	size_t to_room, from_room, n;
	void *from, *to;

	while (len) {
		from = hcomm_mem_map(src, src_off, &from_room);
		to = hcomm_mem_map(dst, dst_off, &to_room);
		n = min3(len, from_room, to_room);
		memmove(to, from, n);
		kunmap_local(to);
		kunmap_local(from);
		src_off += n;
		dst_off += n;
		len -= n;
	}
}

/* From the end: pieces that end where either side's page ends. */
static void hcomm_mem_copy_backward(struct hcomm_mem *dst, u64 dst_off,
				    struct hcomm_mem *src, u64 src_off,
				    size_t len)
{
	size_t n, unused;
	void *from, *to;

	while (len) {
		n = min3(len,
			 offset_in_page(src->base_off + src_off + len - 1) + 1,
			 offset_in_page(dst->base_off + dst_off + len - 1) + 1);
		len -= n;
		from = hcomm_mem_map(src, src_off + len, &unused);
		to = hcomm_mem_map(dst, dst_off + len, &unused);
		memmove(to, from, n);
		kunmap_local(to);
		kunmap_local(from);
	}
}

void hcomm_mem_copy(struct hcomm_mem *dst, u64 dst_off, struct hcomm_mem *src,
		    u64 src_off, size_t len)
{
	if (dst == src && dst_off > src_off)
		hcomm_mem_copy_backward(dst, dst_off, src, src_off, len);
	else
		hcomm_mem_copy_forward(dst, dst_off, src, src_off, len);
}

void hcomm_mem_for_each(struct hcomm_instance *instance,
			void (*fn)(struct hcomm_mem *mem, void *arg), void *arg)
{
	struct hcomm_mem *mem;

	mutex_lock(&hcomm_mems_lock);
	list_for_each_entry(mem, &hcomm_mems, node)
		if (mem->proc->instance == instance)
			fn(mem, arg);
	mutex_unlock(&hcomm_mems_lock);
}
