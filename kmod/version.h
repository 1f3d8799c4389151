/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HCOMM_VERSION_H
#define HCOMM_VERSION_H

#define HCOMM_VERSION	"0.1.0"

#endif
