// flexphase._native: the compiled engines, one bind function per file.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "dispatch.h"

namespace nb = nanobind;

void bind_boltzmann(nb::module_&);
void bind_forward_forward(nb::module_&);
void bind_layered(nb::module_&);
void bind_likelihood(nb::module_&);

static std::vector<std::string> isas() {
    std::vector<std::string> names;
    for (const Isa& built : built_isas())
        if (built.works_here) names.push_back(built.name);
    return names;
}

NB_MODULE(_native, m) {
    m.doc() = "Compiled engines of flexphase; flexphase.engines is the way in.";
    m.def("isas", &isas, "The instruction sets that can be used here, best first.");
    bind_boltzmann(m);
    bind_forward_forward(m);
    bind_layered(m);
    bind_likelihood(m);
}
