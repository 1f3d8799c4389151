// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The JSON document, described in hcomm_benchmark(1). Whoever changes the
 * meaning of a key, or removes one, increases SCHEMA_VERSION.
 */
#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "report.h"

#define SCHEMA_VERSION	1

static void put_text(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key,
			       text && *text ? json_object_new_string(text) :
					       NULL);
}

static void put_number(struct json_object *to, const char *key,
		       uint64_t number)
{
	json_object_object_add(to, key, json_object_new_uint64(number));
}

static void put_integer(struct json_object *to, const char *key, int number)
{
	json_object_object_add(to, key, json_object_new_int(number));
}

static void put_flag(struct json_object *to, const char *key, bool flag)
{
	json_object_object_add(to, key, json_object_new_boolean(flag));
}

/* Short, and the same number when it is read back to 1 part in 10^6. */
static void put_real(struct json_object *to, const char *key, double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.7g", number);
	json_object_object_add(to, key, json_object_new_double_s(number, text));
}

bool bench_json_open(struct bench_report *report)
{
	report->results = json_object_new_array();
	return report->results;
}

static struct json_object *sample_of(const struct bench_sample *sample)
{
	struct json_object *object;

	if (!sample->measured)
		return NULL;
	object = json_object_new_object();
	put_real(object, "time_us", sample->time_us);
	put_real(object, "algbw_GBps", sample->algbw);
	put_real(object, "busbw_GBps", sample->busbw);
	json_object_object_add(object, "wrong",
			       sample->checked ?
				       json_object_new_uint64(sample->wrong) :
				       NULL);
	return object;
}

void bench_json_row(struct bench_report *report, const struct bench_row *row)
{
	struct json_object *object = json_object_new_object();

	put_text(object, "op", row->op->name);
	put_text(object, "type", row->type ? row->type->name : NULL);
	put_text(object, "redop", row->redop ? row->redop->name : NULL);
	put_integer(object, "root", row->root);
	if (row->bucket >= 0)
		put_integer(object, "bucket", row->bucket);
	put_number(object, "bytes", row->bytes);
	put_number(object, "count", row->count);
	put_integer(object, "ranks", row->nranks);
	put_text(object, "buffers", row->memory);
	json_object_object_add(object, "out_of_place",
			       sample_of(&row->out_of_place));
	json_object_object_add(object, "in_place", sample_of(&row->in_place));
	json_object_array_add(report->results, object);
}

static struct json_object *devices_of(const struct bench_environment *env)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < env->ndevices; i++) {
		const struct nldev_device *device = &env->devices[i];
		struct json_object *object = json_object_new_object();

		put_text(object, "name", device->name);
		put_text(object, "protocol", device->protocol);
		put_text(object, "firmware", device->firmware);
		put_flag(object, "software", device->software);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *environment_of(const struct bench_environment *env)
{
	struct json_object *object = json_object_new_object();

	put_text(object, "kernel", env->kernel);
	put_text(object, "module", env->module);
	put_text(object, "library", env->library);
	json_object_object_add(object, "devices", devices_of(env));
	put_flag(object, "software_rdma", env->software_rdma);
	put_flag(object, "emulated", env->emulated);
	put_text(object, "hypervisor", env->hypervisor);
	return object;
}

static struct json_object *ranks_of(const struct bench_group_info *group)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < group->nranks; i++) {
		const struct bench_rank_info *rank = &group->ranks[i];
		struct json_object *object = json_object_new_object();

		put_integer(object, "rank", rank->rank);
		put_text(object, "host", rank->host);
		put_integer(object, "pid", rank->pid);
		put_text(object, "device", rank->device);
		put_text(object, "transport", rank->transport);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *settings_of(const struct bench_args *args)
{
	struct json_object *object = json_object_new_object();
	struct json_object *words = json_object_new_array();

	for (int i = 0; i < args->argc; i++)
		json_object_array_add(words,
				      json_object_new_string(args->argv[i]));
	json_object_object_add(object, "arguments", words);
	put_integer(object, "iterations", args->iterations);
	put_integer(object, "warmups", args->warmups);
	put_integer(object, "checks", args->checks);
	return object;
}

static struct json_object *model_of(const struct bench_report *report)
{
	struct json_object *object = json_object_new_object();

	put_text(object, "name", report->args->model->name);
	put_number(object, "parameters", report->args->model->parameters);
	put_number(object, "bucket_bytes", BENCH_BUCKET_BYTES);
	put_number(object, "buckets", report->model.buckets);
	put_number(object, "elements", report->model.elements);
	put_flag(object, "limited", report->model.limited);
	put_real(object, "time_us", report->model.time_us);
	return object;
}

static void put_totals(struct json_object *to, const struct bench_report *report)
{
	const struct bench_totals *totals = &report->totals;

	json_object_object_add(to, "wrong",
			       totals->checked ?
				       json_object_new_uint64(totals->wrong) :
				       NULL);
	json_object_object_add(to, "out_of_bounds_bytes",
			       totals->checked ?
				       json_object_new_uint64(totals->outside) :
				       NULL);
	if (totals->busbw_count)
		put_real(to, "average_busbw_GBps", bench_report_busbw(report));
	else
		put_text(to, "average_busbw_GBps", NULL);
}

bool bench_json_end(struct bench_report *report, const char *error)
{
	struct json_object *root = json_object_new_object();
	bool ok;

	put_integer(root, "schema_version", SCHEMA_VERSION);
	put_text(root, "tool", "hcomm_benchmark");
	json_object_object_add(root, "environment",
			       environment_of(&report->environment));
	json_object_object_add(root, "settings", settings_of(report->args));
	put_integer(root, "instances", report->group.ninstances);
	put_flag(root, "authenticated", report->group.authenticated);
	json_object_object_add(root, "ranks", ranks_of(&report->group));
	if (report->args->model)
		json_object_object_add(root, "model", model_of(report));
	json_object_object_add(root, "results", report->results);
	put_totals(root, report);
	put_text(root, "error", error);
	errno = 0;
	ok = fprintf(report->json, "%s\n",
		     json_object_to_json_string_ext(root,
						    JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE)) > 0 &&
	     !fflush(report->json);
	if (report->json != stdout)
		ok &= !fclose(report->json);
	json_object_put(root);
	return ok;
}
