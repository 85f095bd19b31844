/* meshplan for other programs: texts in, texts out, over a C ABI.
 *
 *     meshplan_answer* a = meshplan_plan(spec, strlen(spec), NULL);
 *     if (meshplan_code(a) == 0) use(meshplan_text(a));
 *     else show(meshplan_diagnostics(a));
 *     meshplan_free(a);
 *
 * Nothing throws, nothing is kept between calls, and calls may run in several threads at once.
 * Texts are UTF-8 and may hold any bytes; sizes are bytes without a closing zero. What a call
 * returns is the caller's and lives until meshplan_free; it is NULL only where memory is out.
 */
#ifndef MESHPLAN_API_H
#define MESHPLAN_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one whenever a caller of the version before would no longer work. */
#define MESHPLAN_API_VERSION 1

/* Of the library at hand: a caller refuses another one than its own MESHPLAN_API_VERSION. */
int meshplan_api_version(void);
/* "0.1.0" */
const char* meshplan_version(void);

typedef struct meshplan_answer meshplan_answer;

/* 0, or what the command line would exit with: 2 bad input, 3 no plan, 4 wrong plan, 5 environment,
 * 70 a bug in meshplan. */
int meshplan_code(const meshplan_answer* answer);
/* What was asked for; "" where the code is not 0. Closed by a zero byte. */
const char* meshplan_text(const meshplan_answer* answer);
size_t meshplan_text_bytes(const meshplan_answer* answer);
/* Problems and warnings, a JSON document as `--diagnostics json` prints it. */
const char* meshplan_diagnostics(const meshplan_answer* answer);
void meshplan_free(meshplan_answer* answer);

/* Plans a spec's text. `topology`: a preset's name that beats the spec's, or NULL. The text is the
 * plan file that `meshplan plan` writes. Files that the spec names are not read: a spec that names
 * one is bad input. */
meshplan_answer* meshplan_plan(const char* spec, size_t bytes, const char* topology);

/* What the redistributions of a spec take, each planned and verified as meshplan_plan does. The
 * text is {"redistributions": [{"collectives", "id", "lower_bound_ns", "peak_bytes",
 * "predicted_ns", "wire_bytes"}, ...]}, in the spec's order: nanoseconds, and bytes of a rank. */
meshplan_answer* meshplan_price(const char* spec, size_t bytes, const char* topology);

/* Proves a plan file's text: that every step moves every element to its place, and all figures.
 * The text is {"left_out": [...]}: what was not counted anew, empty for most plans. */
meshplan_answer* meshplan_verify(const char* plan, size_t bytes);

/* Who sends which box to whom: the transfers of a plan file's text, verified first, as
 * `meshplan transfers PLAN [ID] [--rank R] --format json` prints them (`meshplan schema transfers`
 * describes the form). `id`: of one redistribution; NULL: all. `rank`: only what the rank of this
 * global id sends, receives or keeps; below 0: every rank. */
meshplan_answer* meshplan_transfers(const char* plan, size_t bytes, const char* id, int64_t rank);

#ifdef __cplusplus
}
#endif

#endif
