// SPDX-License-Identifier: GPL-2.0
/*
 * Registrations: a table of MRs for each (memory object, device), made over a
 * live path's small queue pair when a window is first advertised there or an
 * op first names the object, and kept until the object or the device goes. It
 * serves peers (rkeys) and our own WRITEs (lkeys) alike.
 *
 * An MR covers 1 << mr_shift bytes of the object's pages, counted from the
 * start of the first page; the first and the last may be shorter and are exact
 * to the byte. The iova of byte x is base_off + x: congruent to the memory
 * modulo the page size, which some devices silently rely on. An MR is
 * registered once and never re-keyed or invalidated: software devices free a
 * key while a packet that uses it is still being copied, so MRs go only when
 * no queue pair can use them any more.
 *
 * hcomm_tables_lock, innermost mutex: a table leaves either with its object or
 * with its device, whichever is first.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "fabric.h"
#include "memory.h"
#include "session.h"

static DEFINE_MUTEX(hcomm_tables_lock);

struct hcomm_table *hcomm_table_find(struct hcomm_mem *mem,
				     const struct hcomm_rdev *rdev)
{
	struct hcomm_table *table, *found = NULL;

	rcu_read_lock();
	list_for_each_entry_rcu(table, &mem->mr_tables, mem_node) {
		if (table->serial == rdev->serial) {
			found = table;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

static void hcomm_table_deregister(struct hcomm_table *table,
				   struct ib_device *ib)
{
	struct hcomm_mr *mr;
	u32 i;

	for (i = 0; i < table->count; i++) {
		mr = &table->mrs[i];
		if (mr->mr)
			ib_dereg_mr(mr->mr);
		if (mr->mapped)
			ib_dma_unmap_sg(ib, mr->sgt.sgl, mr->sgt.orig_nents,
					DMA_BIDIRECTIONAL);
		if (mr->sgt.sgl)
			sg_free_table(&mr->sgt);
	}
	table->count = 0;
}

static void hcomm_table_free(struct hcomm_table *table)
{
	kvfree(table->mrs);
	kfree(table);
}

void hcomm_table_discard(struct hcomm_table *table, struct ib_device *ib)
{
	struct hcomm_mem *mem = table->orphan_of;

	hcomm_table_deregister(table, ib);
	hcomm_table_free(table);
	if (mem)
		hcomm_mem_put(mem);
}

/* Maps MR @i of the object and prepares the work request for it. */
static int hcomm_mr_prepare(struct hcomm_table *table, u32 i,
			    struct hcomm_mem *mem, struct hcomm_conn *conn,
			    struct ib_reg_wr *wr)
{
	u64 size = BIT_ULL(table->geom.mr_shift);
	u64 end = table->geom.base_off + table->geom.length;
	u64 from = i ? i * size : table->geom.base_off;
	u64 to = min((i + 1) * size, end);
	unsigned long first = from >> PAGE_SHIFT;
	unsigned int pages = DIV_ROUND_UP(to, PAGE_SIZE) - first;
	struct hcomm_mr *mr = &table->mrs[i];
	int n;

	n = sg_alloc_table_from_pages(&mr->sgt, mem->pages + first, pages,
				      offset_in_page(from), to - from,
				      GFP_KERNEL);
	if (n)
		return n;
	mr->mapped = ib_dma_map_sg(conn->qp->device, mr->sgt.sgl,
				   mr->sgt.orig_nents, DMA_BIDIRECTIONAL);
	if (!mr->mapped)
		return -EIO;
	mr->mr = ib_alloc_mr(conn->qp->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr->mr)) {
		n = PTR_ERR(mr->mr);
		mr->mr = NULL;
		return n;
	}
	n = ib_map_mr_sg(mr->mr, mr->sgt.sgl, mr->mapped, NULL, PAGE_SIZE);
	if (n != mr->mapped)
		return n < 0 ? n : -EINVAL;
	mr->mr->iova = from;
	*wr = (struct ib_reg_wr) {
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr->mr,
		.key = mr->mr->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	return 0;
}

/* The queue pair may still register: as long as it is there pages stay pinned. */
static void hcomm_table_orphan(struct hcomm_table *table, struct hcomm_mem *mem)
{
	hcomm_mem_get(mem);
	table->orphan_of = mem;
}

static int hcomm_table_register(struct hcomm_table *table,
				struct hcomm_mem *mem, struct hcomm_conn *conn)
{
	struct ib_reg_wr *wrs;
	unsigned int n;
	u32 i;
	int ret = 0;

	wrs = kcalloc(HCOMM_REG_BATCH, sizeof(*wrs), GFP_KERNEL);
	if (!wrs)
		return -ENOMEM;
	for (i = 0; i < table->count && !ret; i += n) {
		for (n = 0; n < HCOMM_REG_BATCH && i + n < table->count; n++) {
			ret = hcomm_mr_prepare(table, i + n, mem, conn,
					       &wrs[n]);
			if (ret)
				goto out;
		}
		ret = hcomm_conn_register(conn, wrs, n);
		if (ret && ret != -ENOTCONN)
			hcomm_table_orphan(table, mem);
		cond_resched();
	}
out:
	kfree(wrs);
	return ret;
}

static struct hcomm_table *hcomm_table_alloc(struct hcomm_mem *mem,
					     const struct hcomm_rdev *rdev)
{
	struct hcomm_table *table;

	table = kzalloc(sizeof(*table), GFP_KERNEL);
	if (!table)
		return NULL;
	table->serial = rdev->serial;
	table->geom.length = mem->length;
	table->geom.base_off = mem->base_off;
	table->geom.mr_shift = rdev->mr_shift;
	table->count = hcomm_geom_mr(&table->geom, mem->length - 1) + 1;
	table->mrs = kvcalloc(table->count, sizeof(*table->mrs), GFP_KERNEL);
	if (!table->mrs) {
		kfree(table);
		return NULL;
	}
	return table;
}

struct hcomm_table *hcomm_table_build(struct hcomm_mem *mem,
				      struct hcomm_conn *conn)
{
	struct hcomm_rdev *rdev = conn->port->rdev;
	struct hcomm_table *table;
	int ret;

	mutex_lock(&mem->mr_lock);
	table = hcomm_table_find(mem, rdev);
	if (table)
		goto out;
	table = hcomm_table_alloc(mem, rdev);
	if (!table) {
		table = ERR_PTR(-ENOMEM);
		goto out;
	}
	ret = hcomm_table_register(table, mem, conn);
	if (ret) {
		/* Nobody had a key. */
		if (table->orphan_of)
			hcomm_conn_orphan(conn, table);
		else
			hcomm_table_discard(table, rdev->ib);
		table = ERR_PTR(ret);
		goto out;
	}
	mutex_lock(&hcomm_tables_lock);
	list_add_tail(&table->rdev_node, &rdev->tables);
	mutex_unlock(&hcomm_tables_lock);
	list_add_tail_rcu(&table->mem_node, &mem->mr_tables);
out:
	mutex_unlock(&mem->mr_lock);
	return table;
}

void hcomm_tables_drop(struct hcomm_rdev *rdev)
{
	struct hcomm_table *table, *next;

	mutex_lock(&hcomm_tables_lock);
	list_for_each_entry_safe(table, next, &rdev->tables, rdev_node) {
		list_del_init(&table->rdev_node);
		hcomm_table_deregister(table, rdev->ib);
		table->dropped = true;
	}
	mutex_unlock(&hcomm_tables_lock);
}

/* The last reference is gone, so nobody looks for a table here. */
void hcomm_session_mem_release(struct hcomm_mem *mem)
{
	struct hcomm_table *table, *next;

	list_for_each_entry_safe(table, next, &mem->mr_tables, mem_node) {
		list_del(&table->mem_node);
		mutex_lock(&hcomm_tables_lock);
		if (!table->dropped) {
			list_del(&table->rdev_node);
			hcomm_table_deregister(table, table->mrs[0].mr->device);
		}
		mutex_unlock(&hcomm_tables_lock);
		hcomm_table_free(table);
	}
}
