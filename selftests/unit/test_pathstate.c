// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Every move of a path, allowed or not. */
#include <kselftest_harness.h>

#include "core/pathstate.h"

/* A letter per target (NCFUrdxD) for each state: '1' allowed. */
static const char * const moves[HCOMM_PATH_STATES] = {
	[HCOMM_PATH_NEW]	= "01000010",
	[HCOMM_PATH_CONNECTING]	= "00101010",
	[HCOMM_PATH_FENCING]	= "00011010",
	[HCOMM_PATH_UP]		= "00001010",
	[HCOMM_PATH_DRAINING]	= "00000110",
	[HCOMM_PATH_DOWN]	= "01000010",
	[HCOMM_PATH_CLOSING]	= "00000001",
	[HCOMM_PATH_DEAD]	= "00000000",
};

TEST(only_listed_moves_are_allowed)
{
	enum hcomm_path_state from, to, s;

	for (from = 0; from < HCOMM_PATH_STATES; from++)
		for (to = 0; to < HCOMM_PATH_STATES; to++) {
			ASSERT_EQ(hcomm_path_may_move(from, to),
				  moves[from][to] == '1') {
				TH_LOG("%s to %s", hcomm_path_state_name(from),
				       hcomm_path_state_name(to));
			}
			s = from;
			ASSERT_EQ(hcomm_path_move(&s, to),
				  moves[from][to] == '1');
			ASSERT_EQ(s, moves[from][to] == '1' ? to : from);
		}
	EXPECT_FALSE(hcomm_path_may_move(HCOMM_PATH_STATES, HCOMM_PATH_NEW));
	EXPECT_FALSE(hcomm_path_may_move(HCOMM_PATH_NEW, HCOMM_PATH_STATES));
	EXPECT_FALSE(hcomm_path_may_move(-1, -1));
}

TEST(every_state_has_a_name_of_its_own)
{
	enum hcomm_path_state a, b;

	for (a = 0; a < HCOMM_PATH_STATES; a++)
		for (b = 0; b < a; b++)
			ASSERT_NE(strcmp(hcomm_path_state_name(a),
					 hcomm_path_state_name(b)), 0);
	EXPECT_STREQ(hcomm_path_state_name(HCOMM_PATH_UP), "up");
	EXPECT_STREQ(hcomm_path_state_name(HCOMM_PATH_STATES), "unknown");
	EXPECT_STREQ(hcomm_path_state_name(-1), "unknown");
}

TEST(messages_pass_in_fencing_and_up_only)
{
	enum hcomm_path_state s;

	for (s = 0; s < HCOMM_PATH_STATES; s++)
		EXPECT_EQ(hcomm_path_connected(s), s == HCOMM_PATH_FENCING ||
						   s == HCOMM_PATH_UP);
}

TEST_HARNESS_MAIN
