#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_boltzmann(nb::module_&) {}
