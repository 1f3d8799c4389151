// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Options as in nccl-tests where it has them, and the project's own. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "usage.h"

#define DEFAULT_MIN_BYTES	8
#define DEFAULT_MAX_BYTES	((uint64_t)32 << 20)
#define DEFAULT_ITERATIONS	20
#define DEFAULT_WARMUPS		5
#define MAX_REPEATS		1000000000
#define MAX_BYTES		((uint64_t)1 << 40)

enum {
	OPTION_INSTANCES = 256,
	OPTION_MODEL,
	OPTION_MODEL_LIMIT,
	OPTION_BUFFERS,
	OPTION_JSON,
	OPTION_MIN_BW,
	OPTION_VERSION,
};

static const char usage[] =
"usage: hcomm_benchmark [options]\n"
"\n"
"Measures operations over hcomm and checks every element of their results.\n"
"\n"
"  -t, --test LIST         all_reduce, all_gather, reduce_scatter, broadcast,\n"
"                          reduce, sendrecv, barrier, or all (all_reduce)\n"
"  -b, --minbytes SIZE     smallest size, with K, M or G for 2^10, 2^20, 2^30 (8)\n"
"  -e, --maxbytes SIZE     largest size (32M)\n"
"  -f, --stepfactor N      multiply the size by N (2)\n"
"  -i, --stepbytes SIZE    add SIZE instead\n"
"  -n, --iters N           timed calls of each row (20); passes of a model (1)\n"
"  -w, --warmup_iters N    calls before them (5); passes of a model (0)\n"
"  -c, --check N           calls whose result is checked (1), 0 for none\n"
"  -d, --datatype LIST     int8, uint8, int16, uint16, int32, uint32, int64,\n"
"                          uint64, bool, half, bfloat16, float, double, all (float)\n"
"  -o, --op LIST           sum, prod, min, max, avg, band, bor, bxor, all (sum)\n"
"  -r, --root N            root rank, or all (0)\n"
"  -g, --local-ranks N     ranks to start here (1)\n"
"      --instances LIST    devices, hcomm0,hcomm1: the first ranks get the first\n"
"      --buffers LIST      malloc, heap, all (malloc)\n"
"      --model NAME        resnet50, bert-large, llama-7b: all-reduces the model's\n"
"                          gradients in buckets of 25 MiB, last layer first\n"
"      --model-limit SIZE  stop a pass after SIZE bytes\n"
"      --json FILE         write results as JSON; '-': to standard output, and the\n"
"                          table to standard error\n"
"      --min-bw GBPS       fail when the average bus bandwidth is lower\n"
"  -h, --help\n"
"      --version\n"
"\n"
"With HCOMM_NODES in the environment every node runs this with its HCOMM_NODE,\n"
"HCOMM_ROOT (host:port on node 0) and one HCOMM_SECRET, and starts its -g ranks.\n"
"\n"
"Exit status: 0 all data right, 1 wrong data or below --min-bw, 2 usage,\n"
"3 cannot run.\n";

const char *const bench_memory_names[BENCH_NR_MEMORIES] = { "heap", "malloc" };

static const char short_options[] = "t:b:e:f:i:n:w:c:d:o:r:g:h";

static const struct option long_options[] = {
	{ "test", required_argument, NULL, 't' },
	{ "minbytes", required_argument, NULL, 'b' },
	{ "maxbytes", required_argument, NULL, 'e' },
	{ "stepfactor", required_argument, NULL, 'f' },
	{ "stepbytes", required_argument, NULL, 'i' },
	{ "iters", required_argument, NULL, 'n' },
	{ "warmup_iters", required_argument, NULL, 'w' },
	{ "check", required_argument, NULL, 'c' },
	{ "datatype", required_argument, NULL, 'd' },
	{ "op", required_argument, NULL, 'o' },
	{ "root", required_argument, NULL, 'r' },
	{ "local-ranks", required_argument, NULL, 'g' },
	{ "instances", required_argument, NULL, OPTION_INSTANCES },
	{ "buffers", required_argument, NULL, OPTION_BUFFERS },
	{ "model", required_argument, NULL, OPTION_MODEL },
	{ "model-limit", required_argument, NULL, OPTION_MODEL_LIMIT },
	{ "json", required_argument, NULL, OPTION_JSON },
	{ "min-bw", required_argument, NULL, OPTION_MIN_BW },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{}
};

/* What was given, as far as another option depends on it. */
struct given {
	bool max_bytes;
	bool sizes;
	bool factor;
	bool step;
	bool iterations;
	bool warmups;
	bool tests;
};

__attribute__((format(printf, 1, 2)))
static bool wrong(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	usage_wrong("hcomm_benchmark", format, ap);
	va_end(ap);
	return false;
}

static bool parse_number(const char *option, const char *text, long low,
			 long high, int *value)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	if (errno || end == text || *end || number < low || number > high)
		return wrong("%s %s: must be a number from %ld to %ld", option,
			     text, low, high);
	*value = number;
	return true;
}

static unsigned int shift_of(const char *suffix)
{
	switch (*suffix) {
	case 'K':
	case 'k':
		return 10;
	case 'M':
	case 'm':
		return 20;
	case 'G':
	case 'g':
		return 30;
	default:
		return 0;
	}
}

static bool parse_size(const char *option, const char *text, uint64_t *value)
{
	unsigned long long number;
	unsigned int shift;
	char *end;

	errno = 0;
	number = strtoull(text, &end, 10);
	shift = shift_of(end);
	if (shift)
		end++;
	if (errno || *text < '0' || *text > '9' || *end ||
	    number > MAX_BYTES >> shift)
		return wrong("%s %s: must be a number of bytes, with K, M or G",
			     option, text);
	*value = number << shift;
	return true;
}

static bool parse_bandwidth(const char *option, const char *text,
			    double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < 0)
		return wrong("%s %s: must be a number of GB/s", option, text);
	return true;
}

static int find_op(const char *name)
{
	const struct bench_op *op = bench_op_find(name);

	return op ? op - bench_ops : -1;
}

static int find_type(const char *name)
{
	const struct bench_type *type = bench_type_find(name);

	return type ? type - bench_types : -1;
}

static int find_redop(const char *name)
{
	const struct bench_redop *redop = bench_redop_find(name);

	return redop ? redop - bench_redops : -1;
}

static int find_memory(const char *name)
{
	for (int i = 0; i < BENCH_NR_MEMORIES; i++)
		if (!strcmp(name, bench_memory_names[i]))
			return i;
	return -1;
}

static void set_all(bool *chosen, int count)
{
	for (int i = 0; i < count; i++)
		chosen[i] = true;
}

/* A list of names, of which @find gives the index. */
static bool parse_names(const char *option, const char *text, bool *chosen,
			int count, int (*find)(const char *name))
{
	char *copy = strdup(text), *rest = copy, *name;
	bool ok = copy;

	memset(chosen, 0, count * sizeof(*chosen));
	while (ok && (name = strsep(&rest, ","))) {
		int index = find(name);

		if (index >= 0)
			chosen[index] = true;
		else if (!strcmp(name, "all"))
			set_all(chosen, count);
		else
			ok = wrong("%s %s: there is no '%s'", option, text,
				   name);
	}
	free(copy);
	return ok;
}

static bool is_device(const char *name)
{
	return !strncmp(name, "hcomm", 5) && name[5] &&
	       !name[5 + strspn(name + 5, "0123456789")] && strlen(name) < 16;
}

/* Cuts @text, which lives as long as the arguments. */
static bool parse_instances(struct bench_args *args, char *text)
{
	char *name;

	args->ninstances = 0;
	while ((name = strsep(&text, ","))) {
		if (!is_device(name))
			return wrong("--instances: '%s' is no name of a device like hcomm0",
				     name);
		if (args->ninstances == BENCH_MAX_INSTANCES)
			return wrong("--instances: more than %d devices",
				     BENCH_MAX_INSTANCES);
		args->instances[args->ninstances++] = name;
	}
	return true;
}

static bool parse_root(struct bench_args *args, const char *text)
{
	if (!strcmp(text, "all") || !strcmp(text, "-1")) {
		args->root = BENCH_ROOT_ALL;
		return true;
	}
	return parse_number("-r", text, 0, 4095, &args->root);
}

static bool parse_model(struct bench_args *args, const char *text)
{
	args->model = bench_model_find(text);
	if (!args->model)
		return wrong("--model %s: must be resnet50, bert-large or llama-7b",
			     text);
	return true;
}

static bool parse_factor(struct bench_args *args, const char *text)
{
	int factor;

	if (!parse_number("-f", text, 2, 1 << 20, &factor))
		return false;
	args->step_factor = factor;
	return true;
}

static bool parse_one(struct bench_args *args, struct given *given, int option,
		      char *text)
{
	switch (option) {
	case 't':
		given->tests = true;
		return parse_names("-t", text, args->ops, BENCH_NR_OPS,
				   find_op);
	case 'b':
		given->sizes = true;
		return parse_size("-b", text, &args->min_bytes);
	case 'e':
		given->sizes = true;
		given->max_bytes = true;
		return parse_size("-e", text, &args->max_bytes);
	case 'f':
		given->factor = true;
		return parse_factor(args, text);
	case 'i':
		given->step = true;
		return parse_size("-i", text, &args->step_bytes);
	case 'n':
		given->iterations = true;
		return parse_number("-n", text, 1, MAX_REPEATS,
				    &args->iterations);
	case 'w':
		given->warmups = true;
		return parse_number("-w", text, 0, MAX_REPEATS, &args->warmups);
	case 'c':
		return parse_number("-c", text, 0, MAX_REPEATS, &args->checks);
	case 'd':
		return parse_names("-d", text, args->types, BENCH_NR_TYPES,
				   find_type);
	case 'o':
		return parse_names("-o", text, args->redops, BENCH_NR_REDOPS,
				   find_redop);
	case 'r':
		return parse_root(args, text);
	case 'g':
		args->local_ranks_given = true;
		return parse_number("-g", text, 1, BENCH_MAX_LOCAL,
				    &args->local_ranks);
	case OPTION_INSTANCES:
		return parse_instances(args, text);
	case OPTION_BUFFERS:
		return parse_names("--buffers", text, args->memories,
				   BENCH_NR_MEMORIES, find_memory);
	case OPTION_MODEL:
		return parse_model(args, text);
	case OPTION_MODEL_LIMIT:
		return parse_size("--model-limit", text, &args->model_limit);
	case OPTION_JSON:
		args->json = text;
		return true;
	case OPTION_MIN_BW:
		return parse_bandwidth("--min-bw", text, &args->min_bw);
	default:
		return false;
	}
}

static bool check_sizes(struct bench_args *args, const struct given *given)
{
	if (!given->max_bytes && args->min_bytes > args->max_bytes)
		args->max_bytes = args->min_bytes;
	if (args->min_bytes > args->max_bytes)
		return wrong("-b is larger than -e");
	if (given->step && given->factor)
		return wrong("-i and -f exclude each other");
	if (given->step && !args->step_bytes)
		return wrong("-i 0: the size would never grow");
	return true;
}

static int chosen(const bool *list, int count)
{
	int sum = 0;

	while (count--)
		sum += list[count];
	return sum;
}

/* A model is a list of all-reduces in place, of one kind. */
static bool check_model(struct bench_args *args, const struct given *given)
{
	if (!args->model)
		return !args->model_limit ||
		       wrong("--model-limit needs --model");
	for (int i = 0; given->tests && i < BENCH_NR_OPS; i++)
		if (args->ops[i] && strcmp(bench_ops[i].name, "all_reduce"))
			return wrong("-t %s: --model all-reduces",
				     bench_ops[i].name);
	if (given->sizes || given->step || given->factor)
		return wrong("-b, -e, -f and -i have no meaning with --model");
	if (chosen(args->types, BENCH_NR_TYPES) > 1 ||
	    chosen(args->redops, BENCH_NR_REDOPS) > 1 ||
	    chosen(args->memories, BENCH_NR_MEMORIES) > 1)
		return wrong("-d, -o and --buffers: --model wants one of each");
	if (!given->iterations)
		args->iterations = 1;
	if (!given->warmups)
		args->warmups = 0;
	return true;
}

static bool reduces(const struct bench_args *args)
{
	for (int i = 0; i < BENCH_NR_OPS; i++)
		if (args->ops[i] && bench_ops[i].reduces)
			return true;
	return false;
}

/* Lists name at least one: an empty name is no name. */
static bool check_redops(const struct bench_args *args)
{
	if (!reduces(args))
		return true;
	for (int t = 0; t < BENCH_NR_TYPES; t++)
		for (int o = 0; args->types[t] && o < BENCH_NR_REDOPS; o++)
			if (args->redops[o] &&
			    bench_redop_defined(&bench_redops[o],
						&bench_types[t]))
				return true;
	return wrong("-o, -d: none of these reductions is defined for these types");
}

static void set_defaults(struct bench_args *args)
{
	*args = (struct bench_args){
		.min_bytes = DEFAULT_MIN_BYTES,
		.max_bytes = DEFAULT_MAX_BYTES,
		.step_factor = 2,
		.iterations = DEFAULT_ITERATIONS,
		.warmups = DEFAULT_WARMUPS,
		.checks = 1,
		.local_ranks = 1,
	};
	args->ops[find_op("all_reduce")] = true;
	args->types[find_type("float")] = true;
	args->redops[find_redop("sum")] = true;
	args->memories[BENCH_MALLOC] = true;
}

enum bench_verdict bench_args_parse(struct bench_args *args, int argc,
				    char **argv)
{
	struct given given = {};
	int option;

	set_defaults(args);
	args->argc = argc;
	args->argv = argv;
	while ((option = getopt_long(argc, argv, short_options, long_options,
				     NULL)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return BENCH_DONE;
		}
		if (option == OPTION_VERSION) {
			printf("hcomm_benchmark %d.%d.%d\n", HCOMM_MAJOR,
			       HCOMM_MINOR, HCOMM_PATCH);
			return BENCH_DONE;
		}
		if (!parse_one(args, &given, option, optarg))
			return BENCH_USAGE;
	}
	if (optind < argc) {
		wrong("'%s' is no option", argv[optind]);
		return BENCH_USAGE;
	}
	if (!check_sizes(args, &given) || !check_model(args, &given) ||
	    !check_redops(args))
		return BENCH_USAGE;
	return BENCH_RUN;
}

bool bench_args_next_size(const struct bench_args *args, uint64_t *bytes)
{
	if (args->step_bytes)
		*bytes += args->step_bytes;
	else if (*bytes)
		*bytes *= args->step_factor;
	else
		*bytes = 1;
	return *bytes <= args->max_bytes;
}
