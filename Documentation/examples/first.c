/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <hcomm.h>
#include <stdio.h>

int main(void)
{
	int rank, size;
	hcommComm_t comm;
	void *heap;
	float *x;

	if (hcommInit() || hcommCommDefault(&comm) ||
	    hcommCommRank(comm, &rank) || hcommCommCount(comm, &size) ||
	    hcommSymAlloc(comm, &heap, 1000 * sizeof(float)))
		goto failed;
	x = heap;
	for (int i = 0; i < 1000; i++)
		x[i] = rank + 1;
	if (hcommAllReduce(x, x, 1000, HCOMM_FLOAT32, HCOMM_SUM, comm, NULL))
		goto failed;
	printf("rank %d of %d: every element is %g\n", rank, size, x[999]);
	return hcommFinalize() != HCOMM_SUCCESS;
failed:
	fprintf(stderr, "%s\n", hcommCommGetLastError(NULL));
	return 1;
}
