/* The header is C: a program that plans, as one that loads the library would. */
#include <string.h>

#include "api/meshplan.h"

int c_program_plans(const char* spec);
int c_program_plans(const char* spec) {
  meshplan_answer* answer;
  int code;
  if (meshplan_api_version() != MESHPLAN_API_VERSION) return -1;
  answer = meshplan_plan(spec, strlen(spec), NULL);
  if (answer == NULL) return -2;
  code = meshplan_code(answer);
  meshplan_free(answer);
  return code;
}
