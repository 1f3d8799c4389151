/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The states of a path and the moves between them
 *
 *   new -> connecting -> fencing -> up -> draining -> down -> connecting ...
 *
 *   new         never connected
 *   connecting  connection of the current epoch asked for or being accepted
 *   fencing     connected; reports and control pass, parts wait for the peer's
 *               report about earlier epochs (hcomm_fence_may_post())
 *   up          parts pass
 *   draining    lost: queue pairs go to error, completions are drained
 *   down        drained; may be connected again
 *   closing     no way back: session ends, device leaves
 *   dead        nothing of it is left
 *
 * One function moves a path, under the caller's session lock; who moves it
 * queues the work of the new state.
 */
#ifndef HCOMM_CORE_PATHSTATE_H
#define HCOMM_CORE_PATHSTATE_H

#include "shim.h"

enum hcomm_path_state {
	HCOMM_PATH_NEW,
	HCOMM_PATH_CONNECTING,
	HCOMM_PATH_FENCING,
	HCOMM_PATH_UP,
	HCOMM_PATH_DRAINING,
	HCOMM_PATH_DOWN,
	HCOMM_PATH_CLOSING,
	HCOMM_PATH_DEAD,
	HCOMM_PATH_STATES,
};

/* True when @from -> @to is an allowed move. */
bool hcomm_path_may_move(enum hcomm_path_state from, enum hcomm_path_state to);

/* Moves *@state if allowed; false leaves it as it was. */
bool hcomm_path_move(enum hcomm_path_state *state, enum hcomm_path_state to);

/* True when messages other than parts may be posted. */
static inline bool hcomm_path_connected(enum hcomm_path_state s)
{
	return s == HCOMM_PATH_FENCING || s == HCOMM_PATH_UP;
}

/* Lower-case name for sysfs and traces; "unknown" out of range. */
const char *hcomm_path_state_name(enum hcomm_path_state s);

#endif /* HCOMM_CORE_PATHSTATE_H */
