// flexphase._native: the compiled engines, one bind function per file.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_boltzmann(nb::module_&);
void bind_forward_forward(nb::module_&);
void bind_likelihood(nb::module_&);

NB_MODULE(_native, m) {
    m.doc() = "Compiled engines of flexphase; flexphase.engines is the way in.";
    bind_boltzmann(m);
    bind_forward_forward(m);
    bind_likelihood(m);
}
