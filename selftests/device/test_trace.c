// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tracepoints tell the life of a member and its ops, and no secret.
 */
#include <kselftest_harness.h>

#include <sys/stat.h>

#include "device.h"

#define TRACING	"/sys/kernel/tracing/"

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	int ok;

	if (fd < 0)
		return -errno;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok ? 0 : -EIO;
}

/* All of the trace buffer, NUL-terminated. */
static char *trace_read(void)
{
	static char text[1 << 20];
	int fd = open(TRACING "trace", O_RDONLY);
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return NULL;
	while (n < sizeof(text) - 1 &&
	       (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += got;
	close(fd);
	text[n] = 0;
	return text;
}

static void hex(char *to, const uint8_t *from, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		sprintf(to + 2 * i, "%02x", from[i]);
}

FIXTURE(trace)
{
	struct hcomm_join group;
	char id[17];
};

FIXTURE_SETUP(trace)
{
	struct stat st;

	if (stat("/dev/hcomm0", &st))
		SKIP(return, "no /dev/hcomm0");
	if (stat(TRACING "events/hcomm", &st))
		SKIP(return, "no tracing of hcomm");
	group_new(&self->group, 2);
	hex(self->id, self->group.group_id, 8);
	ASSERT_EQ(put(TRACING "events/hcomm/enable", "1"), 0);
	ASSERT_EQ(put(TRACING "tracing_on", "1"), 0);
	put(TRACING "trace", "\n");
}

FIXTURE_TEARDOWN(trace)
{
	put(TRACING "events/hcomm/enable", "0");
}

/* A line with the event and all of the words after it. */
static bool traced(const char *text, const char *event, const char *id,
		   const char *more)
{
	char line[1024];

	while (*text) {
		size_t n = strcspn(text, "\n");

		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = 0;
			if (strstr(line, event) && strstr(line, id) &&
			    strstr(line, more))
				return true;
		}
		text += n + !!text[n];
	}
	return false;
}

TEST_F(trace, the_life_of_a_member_and_its_ops)
{
	struct hcomm_abort arg = { .error = -EPROTO, .op = 77 };
	char secret[2 * HCOMM_SECRET_BYTES + 1];
	struct hcomm_cqe cqe;
	struct rank r;
	char *text;

	ASSERT_EQ(rank_start(&r, 0, &self->group, 1), 0);
	push_signal(&r, 1, 7, 3);
	ASSERT_EQ(submit(&r, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&r, pop_cqe(&r, &cqe)));
	ASSERT_EQ(call(r.fd, HCOMM_IOC_ABORT, &arg), 0);
	ASSERT_EQ(call(r.fd, HCOMM_IOC_LEAVE, NULL), 0);

	text = trace_read();
	ASSERT_NE(text, NULL);
	EXPECT_TRUE(traced(text, "hcomm_join:", self->id, "rank=1 size=2"));
	EXPECT_TRUE(traced(text, "hcomm_op_submit:", self->id, "SIGNAL"));
	EXPECT_TRUE(traced(text, "hcomm_signal:", self->id,
			   "sem=7 delta=3 value=3"));
	EXPECT_TRUE(traced(text, "hcomm_op_complete:", self->id, "result=0"));
	EXPECT_TRUE(traced(text, "hcomm_error:", self->id,
			   "cause=ABORT error=-71 culprit=1 op=77"));
	EXPECT_TRUE(traced(text, "hcomm_leave:", self->id, "rank=1"));
	hex(secret, self->group.secret, sizeof(self->group.secret));
	EXPECT_EQ(strstr(text, secret), NULL);
	secret[16] = 0;
	EXPECT_EQ(strstr(text, secret), NULL);
}

TEST_HARNESS_MAIN
