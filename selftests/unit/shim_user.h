/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The words of the kernel that kmod/core is written in, for programs: what
 * kmod/core/shim.h takes from linux/ headers in the kernel.
 */
#ifndef HCOMM_SHIM_USER_H
#define HCOMM_SHIM_USER_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the user-space build of the core is for little-endian hosts"
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef u16 __le16;
typedef u32 __le32;
typedef u64 __le64;

#define MAX_ERRNO	4095
#define U8_MAX		UINT8_MAX
#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define U64_MAX		UINT64_MAX

#define cpu_to_le16(x)	((__le16)(x))
#define cpu_to_le32(x)	((__le32)(x))
#define cpu_to_le64(x)	((__le64)(x))
#define le16_to_cpu(x)	((u16)(x))
#define le32_to_cpu(x)	((u32)(x))
#define le64_to_cpu(x)	((u64)(x))

#ifndef __printf
#define __printf(a, b)	__attribute__((__format__(printf, a, b)))
#endif
#ifndef __noreturn
#define __noreturn	__attribute__((__noreturn__))
#endif
#ifndef likely
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#endif

#define BIT(n)		(1UL << (n))
#define BIT_ULL(n)	(1ULL << (n))
#define hweight64(x)	((unsigned int)__builtin_popcountll(x))
#define __ffs64(x)	((unsigned int)__builtin_ctzll(x))
#define is_power_of_2(n) ((n) != 0 && ((n) & ((n) - 1)) == 0)
#define READ_ONCE(x)	(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define min_t(t, a, b)	min((t)(a), (t)(b))
#define max_t(t, a, b)	max((t)(a), (t)(b))
#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)
#define div64_u64(a, b)	((a) / (b))

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif
#ifndef container_of
#define container_of(p, type, member) \
	((type *)((char *)(p) - offsetof(type, member)))
#endif

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline void list_add_between(struct list_head *n, struct list_head *prev,
				    struct list_head *next)
{
	next->prev = n;
	n->next = next;
	n->prev = prev;
	prev->next = n;
}

static inline void list_add(struct list_head *n, struct list_head *head)
{
	list_add_between(n, head, head->next);
}

static inline void list_add_tail(struct list_head *n, struct list_head *head)
{
	list_add_between(n, head->prev, head);
}

static inline void list_del_init(struct list_head *n)
{
	n->next->prev = n->prev;
	n->prev->next = n->next;
	INIT_LIST_HEAD(n);
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline bool list_is_last(const struct list_head *n,
				const struct list_head *head)
{
	return n->next == head;
}

static inline void list_move_tail(struct list_head *n, struct list_head *head)
{
	list_del_init(n);
	list_add_tail(n, head);
}

static inline void list_splice_init(struct list_head *list,
				    struct list_head *head)
{
	struct list_head *first = list->next;
	struct list_head *last = list->prev;
	struct list_head *at = head->next;

	if (list_empty(list))
		return;
	first->prev = head;
	head->next = first;
	last->next = at;
	at->prev = last;
	INIT_LIST_HEAD(list);
}

#define list_entry(p, type, member)	container_of(p, type, member)
#define list_first_entry(h, type, member) list_entry((h)->next, type, member)
#define list_next_entry(p, member) \
	list_entry((p)->member.next, __typeof__(*(p)), member)
#define list_for_each_entry(p, head, member)				\
	for (p = list_first_entry(head, __typeof__(*p), member);	\
	     &p->member != (head); p = list_next_entry(p, member))
#define list_for_each_entry_safe(p, n, head, member)			\
	for (p = list_first_entry(head, __typeof__(*p), member),	\
	     n = list_next_entry(p, member);				\
	     &p->member != (head); p = n, n = list_next_entry(n, member))

#endif /* HCOMM_SHIM_USER_H */
