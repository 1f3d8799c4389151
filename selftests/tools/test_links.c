// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hcomm_diag's links that no machine here has: a path that was lost, and one
 * that only took several tries to connect, in both forms.
 */
#include <errno.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "links.h"

FIXTURE(links)
{
	struct diag_port port;
	struct diag_path path;
	struct diag_links all;
	char text[8192];
};

FIXTURE_SETUP(links)
{
	self->port = (struct diag_port){
		.device = "rxe0", .number = 1, .protocol = "roce", .state = 4,
	};
	self->path = (struct diag_path){
		.instance = "hcomm0", .peer = "00ff", .name = "0",
		.state = "up", .port = "rxe0/1", .last_error = "Timer expired",
	};
	self->all = (struct diag_links){
		.module_loaded = true,
		.ports = &self->port, .nports = 1,
		.paths = &self->path, .npaths = 1,
	};
}

FIXTURE_TEARDOWN(links)
{
}

/* What @print writes to standard output. */
static const char *printed(struct diag_links *links, char *text, size_t room,
			   bool (*print)(const struct diag_links *links))
{
	FILE *file = tmpfile();
	int saved = dup(STDOUT_FILENO);
	ssize_t got = -1;

	diag_links_judge(links);
	fflush(stdout);
	if (file && saved >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0 &&
	    print(links) && !fflush(stdout))
		got = pread(fileno(file), text, room - 1, 0);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	if (file)
		fclose(file);
	text[got > 0 ? got : 0] = '\0';
	return text;
}

#define TABLE(self)	printed(&(self)->all, (self)->text,		\
				sizeof((self)->text), diag_table_print)
#define JSON(self)	printed(&(self)->all, (self)->text,		\
				sizeof((self)->text), diag_json_print)

TEST_F(links, tries_before_the_first_connection_are_not_in_the_table)
{
	ASSERT_NE(NULL, strstr(TABLE(self), "all ok"));
	EXPECT_EQ(NULL, strstr(self->text, "Timer expired"));
}

TEST_F(links, json_has_the_last_error_of_a_path_whatever_it_is)
{
	EXPECT_NE(NULL, strstr(JSON(self), "\"last_error\":\"Timer expired\""));
}

TEST_F(links, a_path_that_came_back_shows_why_it_was_lost_as_its_port_does)
{
	const char *row;

	self->path.reconnects = 1;
	row = strstr(TABLE(self), "Timer expired");
	ASSERT_NE(NULL, row);
	EXPECT_NE(NULL, strstr(row + 1, "Timer expired"));
	EXPECT_NE(NULL, strstr(self->text, "all ok"));
}

TEST_F(links, a_path_that_cannot_connect_shows_why)
{
	strcpy(self->path.state, "connecting");
	EXPECT_NE(NULL, strstr(TABLE(self), "Timer expired"));
	EXPECT_NE(NULL, strstr(self->text, "FAIL: path is connecting"));
}

TEST_HARNESS_MAIN
