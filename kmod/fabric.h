/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to the transport: what its files share.
 *
 *   port.c     RDMA devices and ports, who owns them, their protection domains
 *   cm.c       listener, hello, connecting and accepting
 *   path.c     a path: two queue pairs, sending, receiving, draining
 *   mr.c       registrations of memory objects
 *   session.c  sessions: life, control stream, fencing, liveness
 *   link.c     a group on a session; link_proof.c, link_up.c, link_down.c,
 *              link_fault.c: proofs, how ranks come and go, failures
 *   advert.c   windows: keys given to peers and keys received
 *   flow_tx.c, flow_rx.c  streams: ops to and from one remote rank
 *   sysfs.c    what an administrator sees
 *
 * Locks, outermost first:
 *   ports_lock (mutex)          devices, port ownership
 *   member->windows_lock (mutex) which windows a member has
 *   session->links_lock (mutex) links, remote ranks, adverts, in process context
 *   member->lock                receive side: semaphores
 *   session->lock               control stream, fence, path state
 *   endpoint->lock              a member's ops that have no stream yet
 *   stream->lock                one flow, both directions ("flow lock")
 *   path->sched_lock            who posts next
 *   conn->lock                  one send queue
 * The spinlocks are taken with bottom halves off. session->lock and
 * member->lock are never held together.
 */
#ifndef HCOMM_FABRIC_H
#define HCOMM_FABRIC_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core/credit.h"
#include "core/ctl.h"
#include "core/fence.h"
#include "core/flow.h"
#include "core/pathstate.h"
#include "core/sched.h"
#include "core/stripe.h"
#include "core/wire.h"
#include "group.h"
#include "instance.h"
#include "work.h"

struct hcomm_conn;
struct hcomm_link;
struct hcomm_mem;
struct hcomm_member;
struct hcomm_proc;
struct hcomm_endpoint;
struct hcomm_op;
struct hcomm_path;
struct hcomm_rwin;
struct hcomm_session;
struct hcomm_stream;
struct hcomm_table;
struct hcomm_window;
struct hcomm_xfer;

/* ------------------------------------------------------------ fabric */

/*
 * The transport's half of an instance. The structure stays until the module
 * goes, so that device events need no reference.
 */
struct hcomm_fabric {
	struct hcomm_instance *instance;
	unsigned int nr;		/* of the instance */
	struct rdma_cm_id *listener;
	u16 listen_port;
	spinlock_t lock;		/* sessions, closing, nr_sessions */
	struct list_head sessions;
	bool closing;
	unsigned int nr_sessions;	/* structures that still exist */
	unsigned int nr_big;		/* with deep queues */
	wait_queue_head_t idle;		/* nr_sessions reached 0 */
	struct kobject *ports_dir;	/* ports_lock */
	struct kobject *sessions_dir;
};

/* NULL beyond the last one. */
struct hcomm_fabric *hcomm_fabric_of(unsigned int nr);

/* ------------------------------------------------------------- ports */

struct hcomm_port {
	struct hcomm_rdev *rdev;
	u32 nr;				/* as the device counts: from 1 */
	unsigned int owner;		/* instance; ports_lock */
	struct kobject *dir;		/* ports_lock; sysfs.c */
};

struct hcomm_rdev {
	struct list_head node;		/* ports_lock */
	struct ib_device *ib;
	refcount_t users;		/* connections, the list */
	struct completion idle;
	bool gone;			/* ports_lock: no new user */
	struct ib_event_handler handler;
	struct mutex lock;		/* pds */
	struct ib_pd **pds;		/* by instance, made when first used */
	struct list_head tables;	/* mr.c */
	u64 serial;			/* never given twice */
	u8 mr_shift;			/* an MR holds 1 << mr_shift bytes */
	unsigned int nr_ports;
	struct hcomm_port ports[];
};

extern struct mutex hcomm_ports_lock;
extern struct list_head hcomm_rdevs;

int hcomm_ports_init(void);
void hcomm_ports_exit(void);

/* True when the port can carry traffic; its address. May sleep. */
bool hcomm_port_active(const struct hcomm_port *port);
/* The same for what @id sends: a bound id. May sleep. */
bool hcomm_port_sends(const struct hcomm_port *port,
		      const struct rdma_cm_id *id);
int hcomm_port_addr(const struct hcomm_port *port, u8 *addr);
/* The index of @addr in the GID table is gone. May sleep. */
bool hcomm_port_has_addr(const struct hcomm_port *port, const u8 *addr);

/* A port, remembered without a reference. */
struct hcomm_home {
	u64 rdev;			/* serial of the device, 0: none */
	u32 port;
};

bool hcomm_port_is_home(const struct hcomm_port *port,
			const struct hcomm_home *home);

/*
 * The port to reach @peer from: active, owned by the instance, with the longest
 * prefix in common; @attempt picks the next best. Referenced.
 */
struct hcomm_port *hcomm_port_choose(struct hcomm_fabric *fabric,
				     const u8 *peer, unsigned int attempt,
				     u8 *addr);
/* The port that a request came in on, if the instance owns it. Referenced. */
struct hcomm_port *hcomm_port_of_id(struct hcomm_fabric *fabric,
				    struct rdma_cm_id *id);
void hcomm_port_put(struct hcomm_port *port);
/*
 * Destroys @id, which has no queue pair and whose events mean nothing any more,
 * when the port is active again or the device goes.
 */
void hcomm_port_bury(struct hcomm_port *port, struct rdma_cm_id *id);
/* The port @home is active; any, if the instance does not own that one. */
bool hcomm_ports_hear(struct hcomm_fabric *fabric,
		      const struct hcomm_home *home);
/* "<device>/<port>" becomes the instance's, or hcomm0's again. */
int hcomm_port_assign(struct hcomm_fabric *fabric, const char *name, bool add);

void hcomm_rdev_get(struct hcomm_rdev *rdev);	/* who has one already */
void hcomm_rdev_put(struct hcomm_rdev *rdev);
struct ib_pd *hcomm_rdev_pd(struct hcomm_rdev *rdev, unsigned int instance);

/* ------------------------------------------------------- connections */

/* Messages in whole pages, each mapped once; a message crosses no page. */
struct hcomm_bufs {
	unsigned int count;
	unsigned int size;
	unsigned int per_page;
	enum dma_data_direction dir;
	void **pages;
	u64 *dma;
};

/* A SEND on its way, with the WRITEs before it. */
struct hcomm_send {
	struct ib_cqe cqe;
	struct hcomm_conn *conn;
	struct list_head node;		/* conn->sends_free or sends_busy */
	unsigned int index;		/* of its buffer */
	u16 credits;			/* given back in its header */
	u16 wrs;			/* send queue entries it takes */
	enum hcomm_credit_use use;
	struct hcomm_xfer *xfer;	/* referenced; NULL for other messages */
	struct hcomm_rwin *rwin;	/* its WRITEs count there; referenced */
	u32 bytes;			/* counted by the scheduler */
};

struct hcomm_recv {
	struct ib_cqe cqe;
	unsigned int index;
};

enum hcomm_conn_state {
	HCOMM_CONN_NEW,
	HCOMM_CONN_READY,		/* queue pair made, receives posted */
	HCOMM_CONN_OPEN,		/* established */
	HCOMM_CONN_CLOSED,		/* no more posts */
};

/* One queue pair with its cm_id. */
struct hcomm_conn {
	struct hcomm_path *path;
	struct hcomm_session *session;
	struct hcomm_port *port;	/* referenced */
	struct rdma_cm_id *id;
	enum hcomm_wire_qp kind;
	u32 epoch;
	bool ours;			/* we asked for it */
	bool poke;			/* has no queue pair */
	bool asked;			/* the connection manager has to end it */
	bool fatal;			/* to be noticed by the path's work */
	bool deaf;			/* the receive handler's: lost a letter */
	u16 peer_credits;
	refcount_t refs;		/* the path, a builder of registrations */
	struct completion unused;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct hcomm_bufs rx;
	struct hcomm_bufs tx;
	struct hcomm_recv *recvs;
	struct hcomm_send *sends;

	spinlock_t lock;		/* all below */
	enum hcomm_conn_state state;
	struct hcomm_credit credit;
	struct list_head sends_free;
	struct list_head sends_busy;
	unsigned int sq_free;
	bool hungry;			/* somebody found no room */

	struct mutex reg_lock;		/* one builder of registrations, orphans */
	struct list_head orphans;	/* hcomm_table.mem_node */
	struct ib_cqe reg_cqe;
	struct completion reg_done;
	int reg_status;

	struct ib_cqe write_cqe;	/* completes in error only */
	struct ib_cqe drain_send_cqe;
	struct ib_cqe drain_recv_cqe;
	struct completion drained_send;
	struct completion drained_recv;
};

/*
 * Time to connect both queue pairs: a lost request is repeated by the connection
 * manager only after 4 s, by us after 1, 2, ...; a slow machine gets more later.
 */
static inline unsigned long hcomm_attempt_time(unsigned int attempt)
{
	return min(HZ << min(attempt, 4U), 10 * HZ);
}

/* A path of a session: a small and a bulk connection of the same epoch. */
struct hcomm_path {
	struct hcomm_session *session;
	unsigned int index;

	/* session->lock */
	enum hcomm_path_state state;
	u32 epoch;
	int error;			/* why it last went down */
	unsigned int attempt;		/* since it was last connected */
	unsigned long deadline;		/* of this attempt, jiffies */
	unsigned long retry_at;		/* jiffies */
	bool clear;			/* parts may pass (fence) */
	bool announced;			/* members were told that it is up */
	struct hcomm_home home;		/* where it last stood */
	u8 src[16];
	u8 dst[16];
	u16 dst_port;

	struct hcomm_conn __rcu *conn[2];	/* by enum hcomm_wire_qp */
	struct hcomm_conn *poke;		/* of the work alone */
	struct hcomm_rdev *poke_rdev;		/* where it is; compared only */
	bool poke_over;				/* the work ends it */

	spinlock_t sched_lock;		/* from here to pump_again */
	struct hcomm_sched sched;
	struct list_head starved;	/* streams that wait for the small QP */
	bool pumping;
	bool pump_again;

	atomic64_t bytes_sent;
	atomic64_t bytes_received;
	atomic64_t replayed;
	unsigned int reconnects;
	unsigned int mtu;
	struct delayed_work work;	/* teardown and connecting, one at a time */
};

/* Now, whatever was planned; from any context. */
static inline void hcomm_path_kick(struct hcomm_path *path)
{
	mod_delayed_work(hcomm_teardown_wq, &path->work, 0);
}

/* path.c */
/* Takes over the reference of @port when it succeeds. */
struct hcomm_conn *hcomm_conn_create(struct hcomm_path *path,
				     enum hcomm_wire_qp kind, u32 epoch,
				     struct hcomm_port *port);
/* Makes the queue pair on conn->id and posts its receives. */
int hcomm_conn_setup(struct hcomm_conn *conn);
/* Established: the peer posted @peer_credits receives. */
int hcomm_conn_open(struct hcomm_conn *conn, u16 peer_credits);
/* No post from now on. Any context. */
void hcomm_conn_close(struct hcomm_conn *conn);
/* Destroys it; bounded. Process context, not in a handler of its id. */
void hcomm_conn_destroy(struct hcomm_conn *conn);
/* The same in the handler of a request that is not accepted: the id stays. */
void hcomm_conn_abandon(struct hcomm_conn *conn);
unsigned int hcomm_conn_receives(const struct hcomm_conn *conn);
/* The live connection of the path, referenced, or NULL. */
struct hcomm_conn *hcomm_conn_get(struct hcomm_path *path,
				  enum hcomm_wire_qp kind);
void hcomm_conn_put(struct hcomm_conn *conn);
/* Posts REG_MRs (at most HCOMM_REG_BATCH) and waits for them; bounded. */
int hcomm_conn_register(struct hcomm_conn *conn, struct ib_reg_wr *wrs,
			unsigned int count);
#define HCOMM_REG_BATCH		16
/* A table whose making failed: it goes when the queue pair is destroyed. */
void hcomm_conn_orphan(struct hcomm_conn *conn, struct hcomm_table *table);

/*
 * A free message slot with a credit and @wrs entries of the send queue; NULL:
 * no room now. Then fill hcomm_send_buf() and post, or give it back.
 */
struct hcomm_send *hcomm_conn_reserve(struct hcomm_conn *conn,
				      enum hcomm_credit_use use,
				      unsigned int wrs);
void hcomm_conn_unreserve(struct hcomm_send *send);
void *hcomm_send_buf(struct hcomm_send *send);
/* Posts @first (or just the SEND) of @len bytes; errors take the path down. */
void hcomm_conn_post(struct hcomm_send *send, u32 len, struct ib_rdma_wr *writes,
		     unsigned int nr_writes);
/* A header alone. False: no room. */
bool hcomm_conn_send_header(struct hcomm_conn *conn, enum hcomm_credit_use use,
			    struct hcomm_wire_hdr *h);

void hcomm_path_trace(const struct hcomm_path *path,
		      enum hcomm_path_state from);
/* Moves the path and closes its connections. session->lock held. */
bool hcomm_path_lost(struct hcomm_path *path, enum hcomm_path_state to,
		     int error);
/* Tries to connect now, as if for the first time. session->lock held. */
void hcomm_path_retry(struct hcomm_path *path);
/* @port is active again. The fabric's lock is held. */
void hcomm_path_rises(struct hcomm_path *path, const struct hcomm_port *port);
/* The one way a path goes down. Any context but hard irq. */
void hcomm_path_error(struct hcomm_path *path, int error);
/* The same, when @conn still belongs to the path as it is now. */
void hcomm_conn_error(struct hcomm_conn *conn, int error);
void hcomm_path_init(struct hcomm_path *path, struct hcomm_session *session);
/* @conn stands. Any context. */
void hcomm_path_established(struct hcomm_conn *conn);
/* A message came in on @conn, which was not known to stand. Softirq. */
void hcomm_path_heard(struct hcomm_conn *conn);
/* Takes the path down for good; the session is on no list any more. */
void hcomm_path_end(struct hcomm_path *path, int error);
/* Posts bulk parts until something is missing. No lock held. */
void hcomm_path_pump(struct hcomm_path *path);
/* The small QP has room again. No lock held. */
void hcomm_path_feed(struct hcomm_path *path);

/* cm.c */
int hcomm_cm_listen(struct hcomm_fabric *fabric);
void hcomm_cm_unlisten(struct hcomm_fabric *fabric);
/* Begins to connect one QP; the path hears of the end. Process context. */
int hcomm_cm_connect(struct hcomm_path *path, enum hcomm_wire_qp kind,
		     struct hcomm_port *port, u32 epoch);
/* "Connect to me": NULL when it could not be said. Takes over @port's ref. */
struct hcomm_conn *hcomm_cm_poke(struct hcomm_path *path,
				 struct hcomm_port *port, const u8 *src,
				 const u8 *dst, u16 dst_port);

/* ---------------------------------------------------------- sessions */

enum hcomm_session_state {
	HCOMM_SESSION_NEW,		/* never connected */
	HCOMM_SESSION_OPEN,		/* has been connected */
	HCOMM_SESSION_DEAD,		/* being taken apart */
};

#define HCOMM_CANDIDATES	4

/* Where a member said that the peer listens. */
struct hcomm_candidate {
	u8 addr[16];
	u16 port;
	kuid_t uid[2];			/* of members that named it, or invalid */
};

struct hcomm_session {
	struct kref ref;
	struct rcu_head rcu;
	struct hcomm_fabric *fabric;
	struct list_head node;		/* fabric->sessions, fabric->lock */
	u8 peer[HCOMM_ID_BYTES];
	bool active;			/* we connect: our id is the smaller */
	bool big;			/* deep bulk queues */
	kuid_t uid;			/* who wanted it first */

	spinlock_t lock;		/* from here to path */
	enum hcomm_session_state state;
	int error;			/* why it is dead */
	u64 token;
	u8 nonce[16];
	u8 peer_nonce[16];
	struct hcomm_fence fence;
	struct hcomm_ctl ctl;
	struct list_head inbox;		/* messages for inbox_work, in order */
	unsigned int inbox_count;
	struct hcomm_candidate candidates[HCOMM_CANDIDATES];
	unsigned int nr_candidates;
	unsigned int lingering;		/* links_lock: locals without a member */
	u32 eras;			/* links_lock: that links have had */
	ktime_t heard;			/* last message of the peer */
	ktime_t opened;
	ktime_t useless;		/* since when no member is here, 0: not so */
	ktime_t port_since;		/* last time no port could hear; tick only */
	bool first;			/* just opened: prove */
	bool proven;			/* a rank of the peer was, once */
	bool rekey;			/* keys of another device are out */
	bool rekeyed;			/* new ones are queued, the fence waits */
	bool ack_owed;
	bool kick;			/* streams have something to post again */
	bool nacks;			/* a NACK was ever sent */

	struct hcomm_path path;

	struct mutex links_lock;	/* links, handles, down */
	struct list_head links;		/* hcomm_link.session_node */
	struct xarray handles;		/* group handle -> link; RCU readers */
	bool down;			/* links_lock: takes no new link */

	struct work_struct inbox_work;
	struct work_struct advert_work;
	struct work_struct end_work;
	struct delayed_work tick;
	struct kobject *dir;
	struct kobject *paths_dir;
	struct kobject *path_dir;
};

/* One message of the control stream, allocated with its payload. */
struct hcomm_note {
	struct hcomm_ctl_msg msg;
	void (*done)(struct hcomm_note *note, bool delivered);	/* may be NULL */
	void *arg;
	u32 tag;
	u8 payload[];
};

/* A received message that needs process context. */
struct hcomm_letter {
	struct list_head node;
	u32 len;
	u8 data[];
};

/*
 * Finds or makes the session to @peer and hints where it is, for @proc, or NULL
 * when only the network says so. Referenced. -EAGAIN: too many are not open yet.
 */
struct hcomm_session *hcomm_session_want(struct hcomm_fabric *fabric,
					 const struct hcomm_peer *peer,
					 const struct hcomm_proc *proc);
struct hcomm_session *hcomm_session_find(struct hcomm_fabric *fabric,
					 const u8 *peer);
/* For a first request of an unknown peer. */
struct hcomm_session *hcomm_session_accept(struct hcomm_fabric *fabric,
					   const u8 *peer);
void hcomm_session_get(struct hcomm_session *session);
void hcomm_session_put(struct hcomm_session *session);	/* any context */
/*
 * The peer asks for a new session while we have an old one. It is believed
 * only if the old one is silent, or nobody has proven a rank there for long,
 * because nothing proves the request.
 */
void hcomm_session_superseded(struct hcomm_session *session);
/*
 * Ends the session; everything else happens in end_work. False: it has ended
 * before. Any context.
 */
bool hcomm_session_reset(struct hcomm_session *session, int error);
/* The same, and tells once what @sess_ ended for. */
#define hcomm_session_reset_for(sess_, error, fmt, ...)			\
do {									\
	struct hcomm_session *s_ = (sess_);				\
									\
	if (hcomm_session_reset(s_, error))				\
		pr_warn_ratelimited("hcomm%u: session with %*phN: " fmt "\n", \
				    s_->fabric->nr, HCOMM_ID_BYTES,	\
				    s_->peer, ##__VA_ARGS__);		\
} while (0)
/*
 * The same because of a message that a correct peer does not send, which is
 * told with @why. Any context.
 */
void hcomm_session_violated(struct hcomm_session *session,
			    const struct hcomm_wire_hdr *h, const char *why);

struct hcomm_note *hcomm_note_alloc(u8 type, u32 payload_len, gfp_t gfp);
/* Queues and sends; @note belongs to the session from now on. Any context. */
u64 hcomm_session_note(struct hcomm_session *session, struct hcomm_note *note);
/* Has advert_work run, if the session is open. Any context. */
void hcomm_session_advertise(struct hcomm_session *session);
/* Sends what the fence and the control stream have to say. Any context. */
void hcomm_session_push(struct hcomm_session *session);

/* path.c -> session.c, with session->lock not held */
void hcomm_session_connected(struct hcomm_session *session, u32 epoch);
/* The connections are gone; if they never stood, so is what they brought. */
void hcomm_session_unheard(struct hcomm_session *session);
void hcomm_session_received(struct hcomm_conn *conn,
			    const struct hcomm_wire_msg *m, const void *raw,
			    u32 len);
extern unsigned int hcomm_send_depth;
extern unsigned int hcomm_recv_depth;
extern unsigned int hcomm_dead_after_ms;

/* ------------------------------------------- links and remote ranks */

/* A rank of the peer that proved itself on this session. */
struct hcomm_remote {
	refcount_t refs;		/* the link's table, streams */
	struct rcu_head rcu;
	u32 rank;
	bool gone;			/* links_lock */
	bool busy;			/* links_lock, while settling */
	bool refused;			/* links_lock: had too many windows or keys */
	struct list_head answers;	/* links_lock: notes for GETs given up */
	struct hcomm_rwin *arriving;	/* links_lock: keys are missing */
	u32 nr_windows;			/* links_lock: with keys */
	u32 nr_keys;			/* links_lock: of those */
	struct xarray windows;		/* id -> rwin, a value once revoked; RCU readers */
};

/* A local member as this session knows it. */
struct hcomm_local {
	struct hcomm_member *member;	/* referenced; NULL: it only lingers */
	u32 proofs;			/* that the peer may have taken */
	bool told;			/* the peer took note of the last one */
	bool leaving;
	bool overdue;			/* lingered for HCOMM_LINGER_TIME */
	bool busy;			/* while settling: still on a queue pair */
	unsigned long until;		/* jiffies: lingers, while connected */
	enum hcomm_cause cause;
};

struct hcomm_link {
	struct kref ref;
	struct rcu_head rcu;
	struct work_struct free_work;
	struct hcomm_session *session;	/* referenced */
	struct hcomm_group *group;	/* referenced */
	struct list_head session_node;	/* links_lock */
	struct list_head group_node;	/* group->links_lock */
	u32 peer_handle;		/* 0: nothing proven yet */
	bool peer_left;			/* links_lock: all we knew there are gone */
	u32 era;			/* links_lock: since members are here, again */
	u32 peer_era;			/* links_lock: the peer's, adverts are for it */
	ktime_t born;			/* links_lock: when the first member came */
	bool asked;			/* links_lock: asked the peer to prove */
	bool faulted;			/* group->links_lock, with all of fault* */
	bool fault_known;		/* the peer told us */
	u32 fault_reporter;
	struct hcomm_fault fault;
	struct work_struct fault_work;
	struct work_struct settle_work;
	struct xarray locals;		/* rank -> hcomm_local; links_lock */
	struct xarray remotes;		/* rank -> hcomm_remote; links_lock */
	unsigned int nr_remotes;	/* links_lock: proven, not gone */
	struct xarray streams;		/* by hcomm_stream_index(); RCU readers */
	struct list_head adverts;	/* links_lock: those wanted come first */
	struct xarray windows;		/* links_lock: of adverts, hcomm_advert_find() */
	struct list_head dying;		/* links_lock: dead streams, hcomm_link_settle() */
};

int hcomm_crypto_init(void);
void hcomm_crypto_exit(void);

/* Without links_lock. */
void hcomm_link_prove_all(struct hcomm_session *session);
int hcomm_link_prove_received(struct hcomm_session *session,
			      const struct hcomm_wire_msg *m);
void hcomm_link_prove_failed(struct hcomm_session *session,
			     const struct hcomm_wire_msg *m);
void hcomm_link_remote_gone(struct hcomm_session *session,
			    const struct hcomm_wire_msg *m);
void hcomm_link_abort_received(struct hcomm_session *session,
			       const struct hcomm_wire_msg *m);
/* Ends all links of a session that is dead; how many groups fail by it. */
unsigned int hcomm_links_end(struct hcomm_session *session, int error);
#define HCOMM_CONNECT_MS	60000	/* that a group waits for a connection */
/* Drops links that nobody uses; true if a member of ours is left. */
bool hcomm_links_sweep(struct hcomm_session *session, bool connected);
/* Takes no member any more, if it has been useless since before @since. */
bool hcomm_links_close(struct hcomm_session *session, ktime_t since);
/* How long who has waited longest has. */
s64 hcomm_links_waited_ms(struct hcomm_session *session, ktime_t now);
void hcomm_links_path_event(struct hcomm_session *session,
			    enum hcomm_event_kind kind);
/* Every link of the group, referenced; kfree() the table. Process context. */
struct hcomm_link **hcomm_links_of(struct hcomm_group *group,
				   unsigned int *count);

/* With links_lock held. */
struct hcomm_link *hcomm_link_find(struct hcomm_session *session, u32 handle);
struct hcomm_remote *hcomm_remote_find(struct hcomm_link *link, u32 rank);
/* Ends every stream of @link whose local or remote rank is @rank. */
void hcomm_link_kill(struct hcomm_link *link, bool local, u32 rank, int status,
		     bool linger);
/* Says what can be said now that some dead streams have nothing posted. */
void hcomm_link_settle(struct hcomm_link *link);

/* Any context. */
void hcomm_link_kick(struct hcomm_link *link);
void hcomm_link_get(struct hcomm_link *link);
void hcomm_link_put(struct hcomm_link *link);
void hcomm_remote_put(struct hcomm_remote *remote);

/* The rank proved itself to some session and is gone. */
static inline bool hcomm_group_remote_gone(struct hcomm_group *group, u32 rank)
{
	unsigned long *gone = READ_ONCE(group->gone_ranks);

	return gone && test_bit(rank, gone);
}

/* ----------------------------------------------------------- adverts */

enum hcomm_advert_state {
	HCOMM_ADVERT_WANTED,		/* keys to be made and sent */
	HCOMM_ADVERT_SENT,
	HCOMM_ADVERT_REVOKING,		/* REVOKE sent, REVOKED awaited */
};

/* One of our windows (or GET destinations) as known to one link. links_lock. */
struct hcomm_advert {
	struct list_head node;		/* link->adverts */
	struct hcomm_window *window;	/* referenced; NULL: GET destinations */
	u32 rank;
	u32 id;
	u32 peer;			/* of GETs: who was to answer */
	u32 generation;
	enum hcomm_advert_state state;
	bool sent;			/* the peer may have keys of it */
	unsigned long until;		/* jiffies: REVOKED is due */
	struct list_head lingering;	/* GETs given up that keep their memory */
};

/* Window id of the wire for the destinations of a pair's GETs. */
#define HCOMM_GETS_WINDOW	U32_MAX

/* A window of a remote rank. */
struct hcomm_rwin {
	struct kref ref;
	struct rcu_head rcu;
	struct hcomm_link *link;	/* valid while the remote is reachable */
	u32 owner;			/* remote rank */
	u32 id;
	u32 generation;
	struct hcomm_geom geom;
	u64 iova;
	u32 nr_keys;
	u32 keys_got;
	bool revoked;			/* set once; no WRITE is posted after */
	atomic_t posted;		/* chains on a queue pair, plus one till revoked */
	struct hcomm_note *answer;	/* REVOKED, sent when posted is 0 */
	u32 *keys;
};

/* Peers never have smaller MRs; bounds the WRITEs of a part. */
#define HCOMM_MR_SHIFT_LEAST	18

/* With links_lock held. */
void hcomm_adverts_local(struct hcomm_link *link, struct hcomm_local *local);
void hcomm_adverts_link(struct hcomm_link *link);
/* The peer has forgotten the keys that were sent on @link: sends them again. */
void hcomm_adverts_again(struct hcomm_link *link);
void hcomm_adverts_end(struct hcomm_link *link);
void hcomm_adverts_remote_gone(struct hcomm_link *link);
/* The peer's rank @peer may still answer GETs of @rank that were given up. */
void hcomm_advert_linger(struct hcomm_link *link, u32 rank, u32 peer,
			 struct list_head *lingering);
void hcomm_xfers_release(struct list_head *xfers);
void hcomm_rwins_drop(struct hcomm_remote *remote);

/* Without. */
void hcomm_adverts_work(struct work_struct *work);
bool hcomm_adverts_overdue(struct hcomm_session *session, bool connected);
int hcomm_advert_received(struct hcomm_session *session,
			  const struct hcomm_wire_msg *m);
int hcomm_revoke_received(struct hcomm_session *session,
			  const struct hcomm_wire_msg *m);
void hcomm_revoked_received(struct hcomm_session *session,
			    const struct hcomm_wire_msg *m);

/* Any context. NULL: not advertised yet, -ESTALE: revoked. Referenced. */
struct hcomm_rwin *hcomm_rwin_find(struct hcomm_remote *remote, u32 id);
void hcomm_rwin_get(struct hcomm_rwin *rwin);
void hcomm_rwin_put(struct hcomm_rwin *rwin);
/* WRITEs to it are about to be posted; false: it is revoked. */
bool hcomm_rwin_post(struct hcomm_rwin *rwin);
/* They have completed. No lock of a stream or session held. */
void hcomm_rwin_posted(struct hcomm_rwin *rwin);

/* ------------------------------------------------------ registration */

/*
 * The MRs of one memory object on one device. Found while the finder has a
 * reference to the object and holds a connection over the device; it lasts at
 * least as long as both.
 */
struct hcomm_table {
	struct list_head mem_node;	/* mem->mr_tables: write mr_lock, RCU readers */
	struct list_head rdev_node;	/* rdev->tables */
	u64 serial;			/* of the device */
	bool dropped;			/* the device is gone */
	struct hcomm_mem *orphan_of;	/* referenced by an orphan */
	struct hcomm_geom geom;
	u32 count;
	struct hcomm_mr *mrs;
};

struct hcomm_mr {
	struct ib_mr *mr;
	struct sg_table sgt;
	int mapped;
};

/* Any context; NULL when not built. */
struct hcomm_table *hcomm_table_find(struct hcomm_mem *mem,
				     const struct hcomm_rdev *rdev);
/* Finds or builds it over @conn, a small one. Process context, bounded. */
struct hcomm_table *hcomm_table_build(struct hcomm_mem *mem,
				      struct hcomm_conn *conn);
/* Never published, and no queue pair refers to it. */
void hcomm_table_discard(struct hcomm_table *table, struct ib_device *ib);
/* No connection over the device is left: everything is deregistered. */
void hcomm_tables_drop(struct hcomm_rdev *rdev);

static inline u64 hcomm_table_iova(const struct hcomm_table *table, u64 off)
{
	return off + table->geom.base_off;
}

/* ----------------------------------------------------------- streams */

enum hcomm_xfer_kind {
	HCOMM_XFER_VOID,		/* nothing but a place in the order */
	HCOMM_XFER_SIGNAL,
	HCOMM_XFER_EAGER,
	HCOMM_XFER_PUT,
	HCOMM_XFER_GET,
	HCOMM_XFER_MARK,		/* FENCE */
	HCOMM_XFER_REPLY,
};

/* One flow op: a piece of an op of ours, or our answer to a GET of the peer. */
struct hcomm_xfer {
	struct hcomm_flow_op flow_op;
	struct kref ref;
	struct hcomm_stream *stream;	/* referenced */
	enum hcomm_xfer_kind kind;
	struct hcomm_op *op;		/* referenced; NULL: REPLY */
	struct hcomm_window *window;	/* REPLY: referenced, ours */
	struct hcomm_mem *mem;		/* of op or window */
	struct hcomm_rwin *rwin;	/* PUT, EAGER, GET: referenced */
	struct hcomm_stripe stripe;	/* PUT, REPLY */
	u64 local_off;
	u64 remote_off;
	u32 length;
	u32 window_id;
	u32 generation;
	u32 sem;
	u32 delta;
	u8 flags;			/* of the wire */
	u64 gets;			/* MARK: waits until the floor is here */
	u64 number;			/* REPLY: of the get */
	int error;			/* REPLY: the answer is this */
	u64 iova;			/* REPLY: of the requester */
	u32 nr_keys;
	u32 first_key;
	u32 *keys;
};

struct hcomm_stream {
	struct hcomm_flow flow;
	struct kref ref;
	struct rcu_head rcu;
	struct work_struct free_work;
	spinlock_t lock;		/* the flow lock */
	struct hcomm_link *link;	/* referenced */
	struct hcomm_member *member;	/* referenced */
	struct hcomm_remote *remote;	/* referenced */
	bool open;			/* the peer knows our rank */
	bool dead;
	int status;			/* why */
	struct list_head parked;	/* ops not (wholly) in the flow */
	struct list_head done;		/* handed back, to be finished in order */
	struct list_head fences;	/* MARKs that wait for gets */
	bool finishing;			/* one at a time */
	DECLARE_BITMAP(failed, HCOMM_FLOW_WINDOW); /* ops of the peer not to signal */
	bool ack_armed;
	struct hrtimer ack_timer;	/* holds a reference while armed */
	struct hcomm_mem *build_mem;	/* referenced while a table is made */
	struct work_struct build_work;
	atomic_t posted;		/* sends that carry its transfers */
	struct list_head dying_node;	/* link->dying */

	/* path->sched_lock */
	struct list_head starved_node;	/* path->starved; holds a reference */
	struct hcomm_sched_queue queue;
	u64 cost;			/* of its next bulk part, 0: none */

	struct hcomm_flow_get *gets;
	struct hcomm_flow_slot *slots;
};

static inline unsigned long hcomm_stream_index(u32 local, u32 remote)
{
	return (unsigned long)local << 16 | remote;
}

extern const struct hcomm_flow_ops hcomm_stream_hooks;	/* flow_rx.c */
extern const struct hcomm_fence_ops hcomm_fence_hooks;	/* stream.c */

/* stream.c; links_lock held: */
int hcomm_stream_create(struct hcomm_link *link, struct hcomm_member *member,
			struct hcomm_remote *remote, bool open);
void hcomm_stream_open(struct hcomm_stream *stream);
/* @linger: memory of GETs is kept until the peer says that it writes no more. */
void hcomm_stream_kill(struct hcomm_stream *stream, int status, bool linger);
void hcomm_link_kick_remote(struct hcomm_link *link, u32 rank);
/* links_lock not held: */
int hcomm_streams_init(void);
void hcomm_streams_exit(void);
void hcomm_streams_kick(struct hcomm_session *session);
void hcomm_streams_lift(struct hcomm_session *session, u64 una);
bool hcomm_streams_getting(struct hcomm_session *session);
/* Any context: */
void hcomm_stream_get(struct hcomm_stream *stream);
void hcomm_stream_put(struct hcomm_stream *stream);
/* A send of the stream left its queue pair. */
void hcomm_stream_unposted(struct hcomm_stream *stream);
struct hcomm_xfer *hcomm_xfer_alloc(struct hcomm_stream *stream,
				    enum hcomm_xfer_kind kind);
void hcomm_xfer_get(struct hcomm_xfer *xfer);
void hcomm_xfer_put(struct hcomm_xfer *xfer);
/* Ends what is on stream->done. No lock held. */
void hcomm_stream_finish(struct hcomm_stream *stream);
/* What flows handed back; no lock held. */
void hcomm_xfers_done(struct list_head *done);

/* flow_tx.c */
void hcomm_stream_init_tx(struct hcomm_stream *stream);
/* Admits and posts what can go. No lock held. */
void hcomm_stream_kick(struct hcomm_stream *stream);
/* Posts a bulk part, or finds that there is none. False: the path is full. */
bool hcomm_stream_post_bulk(struct hcomm_stream *stream,
			    struct hcomm_path *path);
/* The member has ended: no op waits or is taken any more. */
void hcomm_endpoint_end(struct hcomm_member *member, int status);
/*
 * @op waits no more. endpoint->lock held, when it has its new place: who sees
 * that none waits goes past it.
 */
void hcomm_endpoint_waited(struct hcomm_endpoint *endpoint,
			   struct hcomm_op *op);
/* @target has joined: ops of local members that waited for its rank go on. */
void hcomm_endpoints_unwait(struct hcomm_member *target);
/* Ops of all local members to @rank that wait for its proof. */
void hcomm_endpoints_fail(struct hcomm_group *group, u32 rank, int status);

/* flow_rx.c */
void hcomm_stream_init_rx(struct hcomm_stream *stream);
void hcomm_stream_message(struct hcomm_session *session,
			  struct hcomm_conn *conn,
			  const struct hcomm_wire_msg *m);
/* Stream's lock held. */
void hcomm_stream_ack_later(struct hcomm_stream *stream);
int hcomm_nack_received(struct hcomm_session *session,
			const struct hcomm_wire_msg *m);

/* flow_show.c: the file hcommN/flows of debugfs, after hcomm_debugfs_create(). */
void hcomm_flows_file(struct hcomm_instance *instance);

/* ------------------------------------------------------------- sysfs */

void hcomm_sysfs_port_add(struct hcomm_fabric *fabric, struct hcomm_port *port);
void hcomm_sysfs_port_del(struct hcomm_port *port);
void hcomm_sysfs_session_add(struct hcomm_session *session);
void hcomm_sysfs_session_del(struct hcomm_session *session);

#endif
