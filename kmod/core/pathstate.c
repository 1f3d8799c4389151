// SPDX-License-Identifier: GPL-2.0
/*
 * The table of allowed moves of a path
 *
 * Holds no state: each path owns its own and moves it under the session lock.
 */
#include "pathstate.h"

#define FROM(s)	BIT(HCOMM_PATH_##s)

/* For each state, the states it may be entered from. */
static const unsigned long entered_from[HCOMM_PATH_STATES] = {
	[HCOMM_PATH_NEW]	= 0,
	[HCOMM_PATH_CONNECTING]	= FROM(NEW) | FROM(DOWN),
	[HCOMM_PATH_FENCING]	= FROM(CONNECTING),
	[HCOMM_PATH_UP]		= FROM(FENCING),
	[HCOMM_PATH_DRAINING]	= FROM(CONNECTING) | FROM(FENCING) | FROM(UP),
	[HCOMM_PATH_DOWN]	= FROM(DRAINING),
	[HCOMM_PATH_CLOSING]	= FROM(NEW) | FROM(CONNECTING) | FROM(FENCING) |
				  FROM(UP) | FROM(DRAINING) | FROM(DOWN),
	[HCOMM_PATH_DEAD]	= FROM(CLOSING),
};

static const char * const names[HCOMM_PATH_STATES] = {
	[HCOMM_PATH_NEW]	= "new",
	[HCOMM_PATH_CONNECTING]	= "connecting",
	[HCOMM_PATH_FENCING]	= "fencing",
	[HCOMM_PATH_UP]		= "up",
	[HCOMM_PATH_DRAINING]	= "draining",
	[HCOMM_PATH_DOWN]	= "down",
	[HCOMM_PATH_CLOSING]	= "closing",
	[HCOMM_PATH_DEAD]	= "dead",
};

bool hcomm_path_may_move(enum hcomm_path_state from, enum hcomm_path_state to)
{
	if ((unsigned int)from >= HCOMM_PATH_STATES ||
	    (unsigned int)to >= HCOMM_PATH_STATES)
		return false;
	return entered_from[to] & BIT(from);
}

bool hcomm_path_move(enum hcomm_path_state *state, enum hcomm_path_state to)
{
	if (!hcomm_path_may_move(*state, to))
		return false;
	*state = to;
	return true;
}

const char *hcomm_path_state_name(enum hcomm_path_state s)
{
	return (unsigned int)s < HCOMM_PATH_STATES ? names[s] : "unknown";
}
