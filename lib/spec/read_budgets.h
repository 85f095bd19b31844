// Reads a spec's "budgets" and "allow".
#pragma once

#include "json/reader.h"
#include "spec/read_redistributions.h"
#include "spec/spec.h"

namespace meshplan {

// Into a spec that has its bundles, and the budgets and silenced warnings of what it extends.
void read_budgets(Reader& reader, uint32_t index, const ReadRedistributions& known, Spec& spec);
void read_allow(Reader& reader, uint32_t index, const ReadRedistributions& known, Spec& spec);

}  // namespace meshplan
