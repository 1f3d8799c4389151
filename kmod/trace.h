/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints. A group is named by the first eight bytes of its id; secrets,
 * addresses of the kernel and contents of buffers never appear.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM hcomm

#if !defined(HCOMM_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define HCOMM_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>

#include "../uapi/hcomm.h"

#define HCOMM_TRACE_ID		8
#define HCOMM_TRACE_STATE	16

#define hcomm_show_opcode(opcode)			\
	__print_symbolic(opcode,			\
		{ HCOMM_OP_NOP,		"NOP" },	\
		{ HCOMM_OP_PUT,		"PUT" },	\
		{ HCOMM_OP_GET,		"GET" },	\
		{ HCOMM_OP_SIGNAL,	"SIGNAL" },	\
		{ HCOMM_OP_WAIT,	"WAIT" },	\
		{ HCOMM_OP_FENCE,	"FENCE" },	\
		{ HCOMM_OP_COPY,	"COPY" })

#define hcomm_show_cause(cause)				\
	__print_symbolic(cause,				\
		{ HCOMM_CAUSE_NONE,	"NONE" },	\
		{ HCOMM_CAUSE_ABORT,	"ABORT" },	\
		{ HCOMM_CAUSE_PROCESS,	"PROCESS" },	\
		{ HCOMM_CAUSE_NODE,	"NODE" },	\
		{ HCOMM_CAUSE_LINK,	"LINK" },	\
		{ HCOMM_CAUSE_TIMEOUT,	"TIMEOUT" },	\
		{ HCOMM_CAUSE_PROTOCOL,	"PROTOCOL" },	\
		{ HCOMM_CAUSE_PROOF,	"PROOF" },	\
		{ HCOMM_CAUSE_REVOKED,	"REVOKED" })

TRACE_EVENT(hcomm_join,
	TP_PROTO(unsigned int instance, const u8 *group, u32 rank, u32 size,
		 int pid),
	TP_ARGS(instance, group, rank, size, pid),
	TP_STRUCT__entry(
		__field(unsigned int, instance)
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, rank)
		__field(u32, size)
		__field(int, pid)
	),
	TP_fast_assign(
		__entry->instance = instance;
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->rank = rank;
		__entry->size = size;
		__entry->pid = pid;
	),
	TP_printk("hcomm%u group=%*phN rank=%u size=%u pid=%d",
		  __entry->instance, HCOMM_TRACE_ID, __entry->group,
		  __entry->rank, __entry->size, __entry->pid)
);

TRACE_EVENT(hcomm_leave,
	TP_PROTO(unsigned int instance, const u8 *group, u32 rank, u32 cause),
	TP_ARGS(instance, group, rank, cause),
	TP_STRUCT__entry(
		__field(unsigned int, instance)
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, rank)
		__field(u32, cause)
	),
	TP_fast_assign(
		__entry->instance = instance;
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->rank = rank;
		__entry->cause = cause;
	),
	TP_printk("hcomm%u group=%*phN rank=%u cause=%s",
		  __entry->instance, HCOMM_TRACE_ID, __entry->group,
		  __entry->rank, hcomm_show_cause(__entry->cause))
);

TRACE_EVENT(hcomm_op_submit,
	TP_PROTO(const u8 *group, u32 source, const struct hcomm_sqe *sqe),
	TP_ARGS(group, source, sqe),
	TP_STRUCT__entry(
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, source)
		__field(u32, rank)
		__field(u8, opcode)
		__field(u8, flags)
		__field(u16, sem)
		__field(u32, window)
		__field(u64, length)
		__field(u64, user_data)
	),
	TP_fast_assign(
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->source = source;
		__entry->rank = sqe->rank;
		__entry->opcode = sqe->opcode;
		__entry->flags = sqe->flags;
		__entry->sem = sqe->sem;
		__entry->window = sqe->window;
		__entry->length = sqe->length;
		__entry->user_data = sqe->user_data;
	),
	TP_printk("group=%*phN rank=%u to=%u %s flags=%#x sem=%u window=%u length=%llu user_data=%#llx",
		  HCOMM_TRACE_ID, __entry->group, __entry->source,
		  __entry->rank, hcomm_show_opcode(__entry->opcode),
		  __entry->flags, __entry->sem, __entry->window,
		  __entry->length, __entry->user_data)
);

TRACE_EVENT(hcomm_op_complete,
	TP_PROTO(const u8 *group, u32 source, const struct hcomm_sqe *sqe,
		 int result, u64 flow_seq),
	TP_ARGS(group, source, sqe, result, flow_seq),
	TP_STRUCT__entry(
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, source)
		__field(u32, rank)
		__field(u8, opcode)
		__field(int, result)
		__field(u64, flow_seq)
		__field(u64, user_data)
	),
	TP_fast_assign(
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->source = source;
		__entry->rank = sqe->rank;
		__entry->opcode = sqe->opcode;
		__entry->result = result;
		__entry->flow_seq = flow_seq;
		__entry->user_data = sqe->user_data;
	),
	TP_printk("group=%*phN rank=%u to=%u %s result=%d flow_seq=%llu user_data=%#llx",
		  HCOMM_TRACE_ID, __entry->group, __entry->source,
		  __entry->rank, hcomm_show_opcode(__entry->opcode),
		  __entry->result, __entry->flow_seq, __entry->user_data)
);

/* A semaphore of @rank rose to @value. */
TRACE_EVENT(hcomm_signal,
	TP_PROTO(const u8 *group, u32 rank, u32 sem, u32 delta, u64 value),
	TP_ARGS(group, rank, sem, delta, value),
	TP_STRUCT__entry(
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, rank)
		__field(u32, sem)
		__field(u32, delta)
		__field(u64, value)
	),
	TP_fast_assign(
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->rank = rank;
		__entry->sem = sem;
		__entry->delta = delta;
		__entry->value = value;
	),
	TP_printk("group=%*phN rank=%u sem=%u delta=%u value=%llu",
		  HCOMM_TRACE_ID, __entry->group, __entry->rank, __entry->sem,
		  __entry->delta, __entry->value)
);

TRACE_EVENT(hcomm_path_state,
	TP_PROTO(unsigned int instance, const u8 *peer, u32 path, u32 epoch,
		 const char *from, const char *to, int error),
	TP_ARGS(instance, peer, path, epoch, from, to, error),
	TP_STRUCT__entry(
		__field(unsigned int, instance)
		__array(u8, peer, HCOMM_TRACE_ID)
		__field(u32, path)
		__field(u32, epoch)
		__array(char, from, HCOMM_TRACE_STATE)
		__array(char, to, HCOMM_TRACE_STATE)
		__field(int, error)
	),
	TP_fast_assign(
		__entry->instance = instance;
		memcpy(__entry->peer, peer, HCOMM_TRACE_ID);
		__entry->path = path;
		__entry->epoch = epoch;
		strscpy(__entry->from, from, HCOMM_TRACE_STATE);
		strscpy(__entry->to, to, HCOMM_TRACE_STATE);
		__entry->error = error;
	),
	TP_printk("hcomm%u peer=%*phN path=%u epoch=%u %s -> %s error=%d",
		  __entry->instance, HCOMM_TRACE_ID, __entry->peer,
		  __entry->path, __entry->epoch, __entry->from, __entry->to,
		  __entry->error)
);

/* A window of @rank: revoking begins, or ends when @quiesced. */
TRACE_EVENT(hcomm_revoke,
	TP_PROTO(const u8 *group, u32 rank, u32 window, u32 generation,
		 bool quiesced),
	TP_ARGS(group, rank, window, generation, quiesced),
	TP_STRUCT__entry(
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, rank)
		__field(u32, window)
		__field(u32, generation)
		__field(bool, quiesced)
	),
	TP_fast_assign(
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->rank = rank;
		__entry->window = window;
		__entry->generation = generation;
		__entry->quiesced = quiesced;
	),
	TP_printk("group=%*phN rank=%u window=%u generation=%u %s",
		  HCOMM_TRACE_ID, __entry->group, __entry->rank,
		  __entry->window, __entry->generation,
		  __entry->quiesced ? "quiesced" : "revoking")
);

/* @rank of the group saw the fault; @culprit is whom it is about. */
TRACE_EVENT(hcomm_error,
	TP_PROTO(const u8 *group, u32 rank, u32 cause, int error, u32 culprit,
		 u64 op),
	TP_ARGS(group, rank, cause, error, culprit, op),
	TP_STRUCT__entry(
		__array(u8, group, HCOMM_TRACE_ID)
		__field(u32, rank)
		__field(u32, cause)
		__field(int, error)
		__field(u32, culprit)
		__field(u64, op)
	),
	TP_fast_assign(
		memcpy(__entry->group, group, HCOMM_TRACE_ID);
		__entry->rank = rank;
		__entry->cause = cause;
		__entry->error = error;
		__entry->culprit = culprit;
		__entry->op = op;
	),
	TP_printk("group=%*phN rank=%u cause=%s error=%d culprit=%u op=%llu",
		  HCOMM_TRACE_ID, __entry->group, __entry->rank,
		  hcomm_show_cause(__entry->cause), __entry->error,
		  __entry->culprit, __entry->op)
);

#endif /* HCOMM_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
