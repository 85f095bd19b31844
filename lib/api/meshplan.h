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
 * plan file that `meshplan plan` writes. Files that the spec names (a topology's, what it
 * extends) are not read: a spec that names one is bad input. */
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

/* The same of the rounds of a bundle of the plan, as `meshplan transfers PLAN --bundle ID
 * [--rank R] --format json` prints them. */
meshplan_answer* meshplan_bundle_transfers(const char* plan, size_t bytes, const char* bundle,
                                           int64_t rank);

/* Prices of many questions on one mesh, without texts on the way: arrays in, nanoseconds out. It
 * keeps the answers, so that a question asked again is looked up. The caller's; one call at a time
 * on each, any number of them in threads. */
typedef struct meshplan_pricer meshplan_pricer;

/* The pricer of the mesh called `mesh` of a spec's text (NULL: its only mesh), with the spec's
 * topology and options; `topology` beats the former. Writes NULL to `made` where the code is not 0,
 * else what meshplan_pricer_free frees. The text is {"dims": [...]}: the names of the mesh's dims. */
meshplan_answer* meshplan_pricer_make(const char* spec, size_t bytes, const char* mesh,
                                      const char* topology, meshplan_pricer** made);
void meshplan_pricer_free(meshplan_pricer* pricer);

/* Questions about tensors of `tensor_dims` dims each, one row of every array a question. A
 * placement is -1 for R, -2 -3 -4 -5 -6 for P(sum) P(avg) P(min) P(max) P(product), else the tensor
 * dim that it shards, plus 256 x its place in the shard order, plus 65536 x the split factor of a
 * strided shard; places count from 0, the major one, and all 0 is the default order. A dtype is its
 * index in: float64 float32 bfloat16 float16 float8_e4m3 float8_e5m2 int64 int32 int16 int8 uint8
 * bool. */
typedef struct meshplan_questions {
  size_t count;
  size_t tensor_dims;
  const int64_t* shapes; /* count x tensor_dims, in elements */
  const int32_t* dtypes; /* count */
  const int64_t* src;    /* count x dims of the mesh */
  const int64_t* dst;
} meshplan_questions;

/* Writes what each question takes to `ns`: the predicted_ns of the plan that meshplan_plan would
 * make, verified as there; -1 where no plan exists. Bad input names the first bad question. */
meshplan_answer* meshplan_pricer_ask(meshplan_pricer* pricer, const meshplan_questions* questions,
                                     int64_t* ns);

#ifdef __cplusplus
}
#endif

#endif
